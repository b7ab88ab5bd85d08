package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/noria-dev/noria/core/agent"
	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/internal/ansi"
	"github.com/noria-dev/noria/core/internal/owner"
	"github.com/noria-dev/noria/core/placement"
)

// probeTime bounds each look at a listener.
const probeTime = 3 * time.Second

// finding is what one check came to.
type finding struct {
	Check  string `json:"check"`
	Result result `json:"result"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

type result string

const (
	good    result = "ok"
	warning result = "warning"
	problem result = "problem"
)

func (p *Program) doctorCommand() *command {
	c := p.newCommand("doctor", "", "Check everything and say what to do").withJSON()
	c.about = `
Checks the configuration, files and their modes, the clock, the daemon, its journal and listener, and the
adapters; with the daemon running also the official clients and the accounts. Each finding says what to do.
The exit code is 1 when there is a problem; warnings alone are 0.`
	c.examples = []string{"noria doctor", "noria doctor -json"}
	c.run = func(ctx context.Context, args, _ []string) error {
		if err := c.exactly(0, args); err != nil {
			return err
		}
		findings := c.examine(ctx)
		var err error
		if c.json {
			err = c.printJSON(findings)
		} else {
			err = c.printFindings(findings)
		}
		if err == nil && slices.ContainsFunc(findings, func(f finding) bool { return f.Result == problem }) {
			err = &exitError{code: exitFailed}
		}
		return err
	}
	return c
}

func (c *command) printFindings(findings []finding) error {
	t := &table{header: []string{"CHECK", "RESULT", "DETAIL"}}
	for _, f := range findings {
		r := t.add(f.Check, string(f.Result), f.Detail)
		r.style[1] = map[result]ansi.Style{good: ansi.Good, warning: ansi.Warn, problem: ansi.Error}[f.Result]
		if f.Remedy != "" {
			r.note("%s", f.Remedy)
		}
	}
	return c.printTable(t)
}

func (c *command) examine(ctx context.Context) []finding {
	file, _ := config.Parse(c.configPath)
	findings := c.examineConfig(ctx)
	if c.namesNone(file) {
		return findings
	}
	findings = slices.Concat(findings, c.examineFiles(file), c.examineClock(file))
	client := api.NewClient(file.ControlSocket())
	defer client.Close()
	status, err := client.Status(ctx)
	if err != nil {
		findings = append(findings, c.examineAbsence(err), examinePort(ctx, file.Listen.Address))
		if file.CheckState() == nil {
			findings = append(findings, inspectState(file.State.Dir)...)
		}
	} else {
		findings = slices.Concat(findings, c.examineDaemon(ctx, file, status))
	}
	findings = slices.Concat(findings, c.examinePlugins(ctx, client, err == nil))
	if err == nil {
		findings = slices.Concat(findings, examineClients(ctx, client, status), examineAccounts(status.Accounts), c.examineForecasts(status))
	}
	return findings
}

func (c *command) examineConfig(ctx context.Context) []finding {
	const check = "configuration"
	found, err := agent.Validate(ctx, c.configPath, c.program.Version)
	if diagnostics, ok := config.AsDiagnostics(err); ok {
		found, err = diagnostics, nil
	}
	if err != nil {
		return []finding{{check, problem, err.Error(), ""}}
	}
	var findings []finding
	for _, d := range found.Sorted() {
		f := finding{Check: check, Result: problem, Detail: d.Summary, Remedy: d.Detail}
		if d.Severity == config.SeverityWarning {
			f.Result = warning
		}
		if d.Range != nil {
			f.Detail = fmt.Sprintf("%s:%d,%d: %s", d.Range.File, d.Range.StartLine, d.Range.StartColumn, d.Summary)
		}
		findings = append(findings, f)
	}
	if len(findings) == 0 {
		findings = []finding{{check, good, "valid, and the plugins agree", ""}}
	}
	return findings
}

// examineFiles looks at what must be the user's alone. What is wrong with the state directory is found with the configuration.
func (c *command) examineFiles(file *config.File) []finding {
	var findings []finding
	if file.WasRead() {
		findings = append(findings, examineMode("configuration file", file.Path, 0o022, "chmod go-w"))
	}
	if file.CheckState() != nil {
		return findings
	}
	return append(findings,
		examineMode("state directory", file.State.Dir, 0o077, "chmod go-rwx"),
		examineMode("client key", filepath.Join(file.State.Dir, "client.key"), 0o077, "chmod go-rwx"))
}

func examineMode(check, path string, forbidden os.FileMode, remedy string) finding {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return finding{check, good, path + " is not there yet", ""}
	case err != nil:
		return finding{check, problem, err.Error(), "make sure that this user may read it"}
	}
	if !owner.Ours(info) {
		return finding{check, problem, path + " belongs to another user", "run noria as its owner, or make it yours with chown"}
	}
	if info.Mode().Type() != os.ModeSymlink && info.Mode().Perm()&forbidden != 0 {
		return finding{check, problem, fmt.Sprintf("%s has mode %04o, which is open to others", path, info.Mode().Perm()), fmt.Sprintf("run: %s %s", remedy, path)}
	}
	return finding{check, good, fmt.Sprintf("%s, mode %04o", path, info.Mode().Perm()), ""}
}

// examineClock compares the clock with a file that was certainly written before now.
func (c *command) examineClock(file *config.File) []finding {
	now := c.program.Now()
	shown := now.In(c.program.Location).Format("2 Jan 2006 15:04:05 MST")
	info, err := os.Stat(file.Path)
	if err == nil && info.ModTime().After(now.Add(time.Hour)) {
		return []finding{{"clock", problem, fmt.Sprintf("it says %s, and %s was written later", shown, file.Path), "set the clock: resets are compared with it"}}
	}
	return []finding{{"clock", good, shown, ""}}
}

func (c *command) examineAbsence(err error) finding {
	if errors.Is(err, api.ErrNotRunning) {
		return finding{"daemon", warning, "it is not running", "start it with \"noria serve\""}
	}
	var refused *api.Error
	if errors.As(err, &refused) {
		return finding{"daemon", problem, refused.Message, refused.Remedy}
	}
	return finding{"daemon", problem, err.Error(), "restart the daemon"}
}

// examinePort of a daemon that does not answer at its socket: whether one could listen there.
func examinePort(ctx context.Context, address string) finding {
	const check = "address"
	listener, err := net.Listen("tcp", address)
	if err != nil && agent.IsNoria(ctx, address) {
		return finding{check, problem, address + " is served by another noria",
			"if it is yours and state.dir has changed, stop it (SIGTERM) and start it anew; else set another listen.address"}
	}
	if err != nil {
		return finding{check, problem, fmt.Sprintf("%s cannot be listened on: %v", address, err), "stop the program that holds it, or set another listen.address"}
	}
	if err := listener.Close(); err != nil {
		return finding{check, warning, err.Error(), ""}
	}
	return finding{check, good, address + " is free", ""}
}

func (c *command) examineDaemon(ctx context.Context, file *config.File, s api.Status) []finding {
	findings := []finding{{"daemon", good, fmt.Sprintf("version %s, pid %d, %s", s.Version, s.PID, s.State), ""}}
	if s.Version != c.program.Version {
		findings = append(findings, finding{"version", warning, fmt.Sprintf("the daemon is %s, this command %s", s.Version, c.program.Version), "restart the daemon"})
	}
	findings = append(findings, examineJournal(s)...)
	if file.Listen.TLSCert != "" {
		// Whom the certificate is for is not known here.
		return findings
	}
	for _, address := range s.Listen {
		findings = append(findings, examineHealth(ctx, address))
	}
	return findings
}

// examineHealth asks the proxy itself, as a client would reach it.
func examineHealth(ctx context.Context, address string) finding {
	const check = "listener"
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	transport := &http.Transport{Proxy: nil, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		return finding{check, problem, err.Error(), ""}
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return finding{check, problem, fmt.Sprintf("%s does not answer: %v", address, err), "see the daemon's log"}
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return finding{check, problem, fmt.Sprintf("%s answers %d", address, response.StatusCode), "see the daemon's log"}
	}
	return finding{check, good, address + " answers", ""}
}

func (c *command) examinePlugins(ctx context.Context, client *api.Client, running bool) []finding {
	var plugins []api.Plugin
	var err error
	if running {
		plugins, err = client.Plugins(ctx)
	} else {
		plugins, err = c.offlinePlugins(ctx)
	}
	if err != nil {
		return []finding{{"adapters", problem, err.Error(), ""}}
	}
	var findings []finding
	for _, plugin := range plugins {
		f := finding{Check: "adapter " + plugin.Name, Result: good, Detail: plugin.Status + ", digest " + plugin.Digest}
		switch {
		case !allUsable([]api.Plugin{plugin}):
			f.Result, f.Detail = problem, plugin.Status+": "+failureText(plugin)
			f.Remedy = agent.PluginRemedy(plugin.Name, plugin.Reason)
		case plugin.Dev:
			f.Result, f.Detail = warning, "dev = true: its executable is not checked"
			f.Remedy = fmt.Sprintf("pin it: \"noria plugins pin %s\"", plugin.Name)
		}
		findings = append(findings, f)
	}
	return findings
}

// examineClients looks for the official clients that noria run would start.
func examineClients(ctx context.Context, client *api.Client, s api.Status) []finding {
	var findings []finding
	for _, provider := range s.Providers {
		plan, err := client.Launch(ctx, api.LaunchRequest{Provider: provider.Name})
		if err != nil || len(plan.Argv) == 0 {
			continue // it starts no client, or its adapter is away, which is found elsewhere
		}
		check := "client of " + provider.Name
		path, err := exec.LookPath(plan.Argv[0])
		if err != nil {
			findings = append(findings, finding{check, warning, plan.Argv[0] + " is not installed, or not in PATH", fmt.Sprintf("install it, or set client in provider %q", provider.Name)})
			continue
		}
		findings = append(findings, finding{check, good, path, ""})
	}
	return findings
}

// examineForecasts finds providers of which no account can serve.
func (c *command) examineForecasts(s api.Status) []finding {
	var findings []finding
	for _, provider := range s.Providers {
		if f := provider.Forecast; f != nil {
			findings = append(findings, finding{"provider " + provider.Name, warning,
				"no account can serve: " + placement.CausesInWords(f.Causes), f.Sentence(c.program.when)})
		}
	}
	return findings
}

func examineAccounts(accounts []api.Account) []finding {
	var findings []finding
	for _, a := range accounts {
		f := finding{Check: "account " + a.ID().String(), Result: good, Detail: loginText(a)}
		switch {
		case a.DisabledBy != "":
			f.Detail = "off by " + a.DisabledBy
		case noLogin(a):
			f.Result = problem
			if a.AuthDetail != "" && !strings.Contains(a.AuthDetail, f.Detail) {
				f.Detail += ": " + a.AuthDetail
			}
			f.Remedy = fmt.Sprintf("make sure that this user can read its home or credential, or log in again with \"noria connect %s\"", a.ID())
		case a.ProbeError != "":
			f.Result, f.Detail = warning, "last read of its quota failed: "+a.ProbeError
			f.Remedy = fmt.Sprintf("try \"noria accounts refresh %s\"", a.ID())
		}
		findings = append(findings, f)
	}
	return findings
}
