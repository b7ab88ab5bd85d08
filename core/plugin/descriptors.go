package plugin

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// keepDescriptors marks every descriptor of this process, the three standard ones aside, so that no child inherits it.
// Go marks those that it opens; this is for those the daemon itself inherited.
func keepDescriptors() error {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return fmt.Errorf("list descriptors: %w", err)
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
