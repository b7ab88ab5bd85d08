package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noria-dev/noria/core/api"
)

func TestDoctorExplainsAStateDirectoryWithoutADaemon(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(dir string) error
		want    result
		detail  string
	}{
		"that is not there":          {func(string) error { return nil }, good, "is not there yet"},
		"that is empty":              {func(dir string) error { return os.Mkdir(dir, 0o700) }, good, "0 entries"},
		"that is open to others":     {func(dir string) error { return os.Mkdir(dir, 0o755) }, problem, "others have access"},
		"that is a file":             {func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, problem, "not a directory"},
		"with a damaged snapshot":    {holding("snapshot-7", "nothing of use"), warning, "snapshot-7: the snapshot cannot be used"},
		"with a journal of nobody's": {holding("journal-7", "#!/bin/sh\n"), warning, "journal-7: the journal cannot be used"},
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

func holding(name, content string) func(dir string) error {
	return func(dir string) error {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)
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
