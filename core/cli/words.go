package cli

import (
	"strings"

	"github.com/noria-dev/noria/core/internal/printable"
)

// text is what came from outside, made printable.
func text(s string) string { return printable.Text(s) }

// inWords says a code of the daemon in words.
func inWords(code string) string {
	switch code {
	case "known":
		return "by its score"
	case "cautious":
		return "as a cautious attempt"
	case "follow":
		return "with another request of the session"
	case "sibling":
		return "with the session's other model"
	case "unjudged":
		return "not judged"
	case "no_account", "no_eligible_account":
		return "no account can serve"
	}
	return strings.ReplaceAll(code, "_", " ")
}
