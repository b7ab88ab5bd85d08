package simulation

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/noria-dev/noria/core/placement"
)

// explain writes the reasoning as comment lines, so that the output stays a trace.
func (s *simulator) explain(d placement.Decision) {
	lines := bufio.NewScanner(strings.NewReader(placement.Explain(d)))
	for lines.Scan() {
		fmt.Fprintln(s.out, strings.TrimRight("# "+lines.Text(), " "))
	}
}
