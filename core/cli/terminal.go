package cli

import (
	"io"
	"os"

	"github.com/mattn/go-isatty"

	"github.com/noria-dev/noria/core/internal/ansi"
)

// isTerminal tells whether a person is at the other end of a reader or writer.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

// colourOn tells whether w may be coloured: a terminal, and NO_COLOR is not set.
func (c *command) colourOn(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w)
}

func (c *command) style(w io.Writer, style ansi.Style, text string) string {
	if !c.colourOn(w) {
		return text
	}
	return style.Text(text)
}
