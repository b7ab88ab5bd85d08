package agent_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestBindingsMoveToAnotherMachine(t *testing.T) {
	here, there := newScene(t, "ada", "ben"), newScene(t, "ada", "cyn")
	client := clientOf(here.Start().Ready())
	session := func(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }
	for i := range 4 {
		client.served(t, session(i))
	}
	file := here.Path("bindings.json")
	if _, errs, code := here.Run("state", "export", file); code != 0 {
		t.Fatalf("export ended with %d: %s", code, errs)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}

	client = clientOf(there.Start().Ready())
	if out, errs, code := there.Run("state", "import", file); code != 0 || !strings.Contains(out, "4 bindings added") {
		t.Fatalf("import ended with %d: %s%s", code, out, errs)
	}
	for _, s := range here.sessionsOf(10) {
		there.upstream.Forget()
		client.served(t, strings.TrimPrefix(s.Key, "claude/"))
		got := only(t, there.servedBy())
		if home := strings.TrimPrefix(s.Bindings[0].Account, "claude/"); home == "ada" && got != home {
			t.Errorf("%s lived on %s and is served by %s", s.Key, home, got)
		}
	}
	if out, errs, code := there.Run("state", "import", file); code != 0 || !strings.Contains(out, "4 kept") {
		t.Errorf("the second import ended with %d: %s%s", code, out, errs)
	}
}

func TestAnImportThatIsNotValidIsRefusedWithARemedy(t *testing.T) {
	s := newScene(t, "ada")
	s.Start().Ready()
	const good = `{"session":"claude/a","account":"ada","bound_at":"2026-03-02T08:00:00Z","last_used":"2026-03-02T08:00:00Z","bound_by":"initial"}`
	for name, text := range map[string]string{
		"no JSON":             "{",
		"another program's":   `{"version":1,"bindings":[` + good + `]}`,
		"a newer release's":   `{"format":2,"bindings":[` + good + `]}`,
		"a strange time":      `{"format":1,"bindings":[` + good + `,{"session":"claude/b","account":"ada","bound_at":1796000400000}]}`,
		"an escape in a name": `{"format":1,"bindings":[` + good + `,{"session":"claude/\u001b[2J","account":"ada","bound_by":"initial"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, errs, code := s.Run("state", "import", s.Write("hostile.json", text))
			if code != 2 || !strings.Contains(errs, "noria state export") {
				t.Errorf("ended with %d: %s", code, errs)
			}
			if found := s.sessionsOf(10); len(found) > 0 {
				t.Errorf("taken: %+v", found)
			}
		})
	}
}
