package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/noria-dev/noria/core/config"
)

// clientHome says how an official client's home is known: its place in the user's home, the variable that moves it, and
// entries of which it has at least one after a login or a first run.
type clientHome struct {
	provider, folder, variable string
	entries                    []string
}

var clientHomes = []clientHome{
	{"claude", ".claude", "CLAUDE_CONFIG_DIR", []string{".credentials.json", ".claude.json", "settings.json", "projects"}},
	{"codex", ".codex", "CODEX_HOME", []string{"auth.json", "config.toml", "sessions"}},
}

func (p *Program) initCommand() *command {
	c := p.newCommand("init", "", "Write a configuration from the official clients' homes")
	c.about = `
Looks for homes of the official clients (~/.claude, ~/.claude-NAME, ~/.codex, ~/.codex-NAME, and where
CLAUDE_CONFIG_DIR and CODEX_HOME point) and writes a configuration with one account for each. It reads
no login, asks nothing, and never overwrites a file.`
	c.examples = []string{"noria init", "noria init -print"}
	onlyPrint := c.flags.Bool("print", false, "print the configuration and write nothing")
	c.run = func(_ context.Context, args, _ []string) error {
		if err := c.exactly(0, args); err != nil {
			return err
		}
		accounts, err := findAccounts()
		if err != nil {
			return err
		}
		if len(accounts) == 0 {
			c.complain("no home of an official client was found", "log in first, such as with \"claude auth login\" or \"codex login\"")
			return &exitError{code: exitFailed}
		}
		written := config.Initial("Written by noria init. noria.hcl.example shows every setting with its default.", accounts)
		if *onlyPrint {
			return c.printf("%s", written)
		}
		path, err := c.file(nil)
		if err != nil {
			return err
		}
		return c.writeConfig(path, written, accounts)
	}
	return c
}

func (c *command) writeConfig(path string, written []byte, accounts []config.InitialAccount) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		c.complain(path+" exists already", "\"noria init -print\" shows what would be written")
		return &exitError{code: exitRefused}
	}
	if err == nil {
		_, err = file.Write(written)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	for _, a := range accounts {
		if err := c.printf("found %s/%s in %s\n", a.Provider, a.Name, text(a.Home)); err != nil {
			return err
		}
	}
	return c.printf("wrote %s\n\nNext: \"noria serve\", and in another terminal \"noria run %s\".\n", text(path), accounts[0].Provider)
}

func findAccounts() ([]config.InitialAccount, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, fmt.Errorf("find the home directory: %w", err)
	}
	var accounts []config.InitialAccount
	for _, client := range clientHomes {
		found, err := client.find(home)
		if err != nil {
			return nil, err
		}
		accounts = append(accounts, found...)
	}
	return accounts, nil
}

func (h clientHome) find(home string) ([]config.InitialAccount, error) {
	folders, err := filepath.Glob(filepath.Join(globEscape(home), h.folder+"-*"))
	if err != nil {
		return nil, fmt.Errorf("look for homes of %s: %w", h.provider, err)
	}
	folders = append([]string{filepath.Join(home, h.folder)}, folders...)
	if moved := os.Getenv(h.variable); filepath.IsAbs(moved) && !slices.Contains(folders, filepath.Clean(moved)) {
		folders = append(folders, filepath.Clean(moved))
	}
	var accounts []config.InitialAccount
	names := map[string]bool{}
	for _, folder := range folders {
		if !h.used(folder) {
			continue
		}
		name := h.accountName(folder)
		for n := 2; names[name]; n++ {
			name = fmt.Sprintf("%s-%d", h.accountName(folder), n)
		}
		names[name] = true
		if rest, ok := strings.CutPrefix(folder, home+"/"); ok {
			folder = "~/" + rest
		}
		accounts = append(accounts, config.InitialAccount{Provider: h.provider, Name: name, Home: folder})
	}
	return accounts, nil
}

func (h clientHome) used(folder string) bool {
	return slices.ContainsFunc(h.entries, func(entry string) bool {
		_, err := os.Stat(filepath.Join(folder, entry))
		return err == nil
	})
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+|^[^A-Za-z0-9]+`)

// accountName is what the folder is called beyond the client's own name.
func (h clientHome) accountName(folder string) string {
	name := strings.TrimPrefix(strings.TrimPrefix(filepath.Base(folder), h.folder), "-")
	name = strings.Trim(notInNames.ReplaceAllString(name, "-"), "-")
	if name == "" {
		return "main"
	}
	return name[:min(len(name), 60)]
}

func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
