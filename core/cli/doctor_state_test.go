package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/journal"
)

func TestDoctorExplainsAStateDirectoryWithoutADaemon(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(dir string) error
		want    result
		detail  string
	}{
		"that is empty":                      {func(dir string) error { return os.Mkdir(dir, 0o700) }, good, "0 entries"},
		"that is open to others":             {func(dir string) error { return os.Mkdir(dir, 0o755) }, problem, "others have access"},
		"that is a file":                     {func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, problem, "not a directory"},
		"with a damaged snapshot":            {holding("snapshot-7", "nothing of use"), warning, "snapshot-7: the snapshot cannot be used"},
		"with a journal of nobody's":         {holding("journal-7", "#!/bin/sh\n"), warning, "journal-7: the journal cannot be used"},
		"with an entry of a newer release":   {written(`{"type":"lease","body":{}}`, ""), problem, "a newer release"},
		"with an entry that is not valid":    {written(`{"type":"unbind","body":[]}`, ""), warning, "the entry 1 was refused"},
		"with a snapshot of a newer release": {written("", `{"format":99,"sequence":0,`+"\n"), problem, "newer than this release knows"},
		"with a snapshot of something else":  {written("", `{}`), warning, "snapshot-1: the snapshot cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			if err := c.prepare(dir); err != nil {
				t.Fatal(err)
			}
			findings := inspectState(dir)
			for _, f := range findings {
				if f.Result == c.want && strings.Contains(f.Detail, c.detail) && (f.Result == good || f.Remedy != "") {
					return
				}
			}
			t.Errorf("findings %+v", findings)
		})
	}
}

func TestDoctorHasNothingToSayOfAStateDirectoryThatIsNotThere(t *testing.T) {
	if findings := inspectState(filepath.Join(t.TempDir(), "state")); len(findings) > 0 {
		t.Errorf("findings %+v", findings)
	}
}

func holding(name, content string) func(dir string) error {
	return func(dir string) error {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)
	}
}

// written is a directory whose journal holds the entry, and whose snapshot the body.
func written(entry, body string) func(dir string) error {
	nothing := func(uint64, []byte) error { return nil }
	return func(dir string) error {
		log, err := journal.Open(journal.Options{Dir: dir})
		if err != nil {
			return err
		}
		err = log.Recover(nothing, nothing)
		if err == nil && body != "" {
			err = log.Snapshot(func(w io.Writer) (uint64, error) {
				_, err := io.WriteString(w, body)
				return 0, err
			})
		}
		if err == nil && entry != "" {
			_, err = log.Append([]byte(entry))
		}
		return errors.Join(err, log.Close())
	}
}

func TestDoctorTellsWhyAJournalIsDegraded(t *testing.T) {
	fault := api.StateFinding{Level: "fault", What: "no space left on device", Where: "state directory", Do: "free some space"}
	findings := examineJournal(api.Status{Journal: "degraded", StateFindings: []api.StateFinding{fault}})
	if len(findings) != 1 || findings[0].Result != problem || !strings.Contains(findings[0].Detail, fault.What) || findings[0].Remedy != fault.Do {
		t.Errorf("with a cause: %+v", findings)
	}
	if findings := examineJournal(api.Status{Journal: "degraded"}); len(findings) != 1 || findings[0].Result != problem {
		t.Errorf("without: %+v", findings)
	}
	if findings := examineJournal(api.Status{Journal: "ok"}); len(findings) != 1 || findings[0].Result != good {
		t.Errorf("when all is well: %+v", findings)
	}
}
