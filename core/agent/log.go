package agent

import (
	"io"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/events"
)

func logLevel(cfg config.Log) hclog.Level { return hclog.LevelFromString(cfg.Level) }

// inFull gives diagnostics as people are shown them, for an attribute of an entry.
func inFull(found config.Diagnostics) string {
	var text strings.Builder
	_ = found.Write(&text, false) // a builder takes everything
	return text.String()
}

// newLogger returns the daemon's log. Redaction is the second net behind logging no free text from outside.
func newLogger(cfg config.Log, out io.Writer, redactor *events.Redactor) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Name:       "noria",
		Level:      logLevel(cfg),
		Output:     redactor.Writer(out),
		JSONFormat: cfg.Format == config.LogJSON,
	})
}
