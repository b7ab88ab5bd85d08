//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/internal/upstream"
)

// accountNames of each provider, in the order of the configuration.
var accountNames = [...]string{"ada", "ben", "cyn"}

// world is one upstream, one daemon in front of it, a recorder in front of that, and a home for the clients.
type world struct {
	*testing.T
	// dir is short, because sockets are in it.
	dir      string
	upstream *upstream.Server
	recorder *recorder
	daemon   *daemon
	// key lets clients in at the daemon.
	key      string
	accounts []account
	// canaries are in every credential that the accounts hold.
	canaries []string
}

// newWorld starts a daemon with three accounts of each provider, all of which serve.
func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "ne-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("kept for a look: %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the world: %v", err)
		}
	})
	w := &world{T: t, dir: dir, upstream: upstream.Start()}
	t.Cleanup(w.upstream.Close)
	for _, provider := range []string{"claude", "codex"} {
		for _, name := range accountNames {
			w.addAccount(provider, name)
		}
	}
	w.configure()
	w.daemon = &daemon{world: w, port: freePort(t)}
	w.writeConfig()
	t.Cleanup(w.daemon.stop)
	w.daemon.start()
	w.key = ask[api.Token](w, "token", "show").Key
	w.recorder = startRecorder(t, w.daemon.address())
	// The last to be registered is the first to run: the daemon still lives.
	t.Cleanup(w.checkCanaries)
	return w
}

// path inside the world; its directory is made.
func (w *world) path(elements ...string) string {
	w.Helper()
	path := filepath.Join(append([]string{w.dir}, elements...)...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.Fatal(err)
	}
	return path
}

// folder inside the world, made.
func (w *world) folder(elements ...string) string {
	w.Helper()
	path := w.path(elements...)
	if err := os.MkdirAll(path, 0o700); err != nil {
		w.Fatal(err)
	}
	return path
}

func (w *world) write(path, text string) {
	w.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

// configure lets every account serve and tells room on all of them.
func (w *world) configure() {
	for _, a := range w.accounts {
		w.upstream.Script(a.token, upstream.OK())
		w.upstream.SetUsage(a.token, upstream.Usage{FiveHour: 10, Weekly: 10})
	}
}

func (w *world) writeConfig() {
	w.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "listen {\n  address = %q\n}\nstate {\n  dir = %q\n}\nlog {\n  level = \"debug\"\n}\n",
		w.daemon.address(), w.path("daemon", "state"))
	for _, provider := range []string{"claude", "codex"} {
		fmt.Fprintf(&text, "provider %q {\n  client = %q\n", provider, absolute(w.T, clients, provider))
		switch provider {
		case "claude":
			fmt.Fprintf(&text, "  upstream = %q\n", w.upstream.URL)
		case "codex":
			fmt.Fprintf(&text, "  upstream = %q\n  backend = %q\n", w.upstream.URL+"/backend-api/codex", w.upstream.URL+"/backend-api")
		}
		for _, a := range w.accounts {
			if a.provider == provider {
				fmt.Fprintf(&text, "  account %q {\n    home = %q\n  }\n", a.name, a.home)
			}
		}
		fmt.Fprint(&text, "}\n")
	}
	w.write(w.daemon.config(), text.String())
}
