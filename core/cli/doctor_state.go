package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/journal"
	"github.com/noria-dev/noria/core/state"
)

// examineJournal tells what the daemon knows about its state directory.
func examineJournal(s api.Status) []finding {
	var findings []finding
	for _, f := range s.StateFindings {
		findings = append(findings, stateFinding(journal.Finding{Level: journal.Level(f.Level), What: f.What, Where: f.Where, Do: f.Do}))
	}
	switch {
	case s.Journal == "ok" || s.Journal == "none":
		return append([]finding{{"journal", good, s.Journal, ""}}, findings...)
	case len(findings) > 0 && findings[0].Result == problem:
		return findings
	}
	return append([]finding{{
		"journal", problem, "it is " + s.Journal + ": serving goes on from memory, and nothing new survives a restart",
		"make room on the disk of the state directory",
	}}, findings...)
}

// inspectState looks at a state directory that no daemon writes in, as a start would, and changes nothing.
func inspectState(dir string) []finding {
	const check = "state"
	restore, apply := state.Inspect()
	found, findings, err := journal.Inspect(dir, restore, apply)
	var (
		newer  *journal.NewerFormatError
		unsafe *journal.UnsafeError
	)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil // told with its mode
	case errors.As(err, &newer):
		return []finding{{check, problem, err.Error(), "use that release again; nothing was changed"}}
	case errors.As(err, &unsafe):
		return []finding{{check, problem, err.Error(), unsafe.Remedy}}
	case err != nil:
		return []finding{{check, problem, err.Error(), "make sure that this user may read it"}}
	}
	all := []finding{{check, good, fmt.Sprintf("%d entries after the snapshot of entry %d", found.Entries, found.SnapshotSequence), ""}}
	for _, f := range findings {
		all = append(all, stateFinding(f))
	}
	return all
}

func stateFinding(f journal.Finding) finding {
	level := map[journal.Level]result{journal.Note: good, journal.Warning: warning, journal.Fault: problem}[f.Level]
	return finding{"state", level, f.Where + ": " + f.What, f.Do}
}
