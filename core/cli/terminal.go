package cli

import (
	"io"
	"os"

	"github.com/mattn/go-isatty"
)

// Styles for terminals.
const (
	styleReset = "\x1b[0m"
	styleBold  = "\x1b[1m"
	styleDim   = "\x1b[2m"
	styleGood  = "\x1b[32m"
	styleWarn  = "\x1b[33m"
	styleError = "\x1b[31m"
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

func (c *command) style(w io.Writer, style, text string) string {
	if style == "" || text == "" || !c.colourOn(w) {
		return text
	}
	return style + text + styleReset
}
