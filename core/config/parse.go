package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"golang.org/x/sys/unix"
)

const maxFile = 1 << 20

// File is a configuration file whose host part is decoded; what belongs to plugins waits for their schemas.
type File struct {
	// Host has the values that could be read, defaults elsewhere; only a Config is known to be without errors.
	Host
	// Providers in configuration order.
	Providers []ProviderName

	name      string // as the user wrote it
	source    []byte
	body      *hclsyntax.Body
	eval      *hcl.EvalContext
	providers []*providerBlock
	plugins   []*pluginBlock
	// stateDir is where state.dir is set, nil for the default.
	stateDir *hcl.Range
	found    hcl.Diagnostics
	// harmless holds the offsets of attributes whose values may be shown.
	harmless map[int]bool
}

// ProviderName says which plugin serves a provider.
type ProviderName struct {
	Name, Plugin string
}

// root is the file as gohcl decodes it. Pointers are set to the defaults before, so a block left out keeps them.
type root struct {
	Listen    *listenBlock     `hcl:"listen,block"`
	State     *stateBlock      `hcl:"state,block"`
	Telemetry *telemetryBlock  `hcl:"telemetry,block"`
	Placement *placementBlock  `hcl:"placement,block"`
	Limits    *limitsBlock     `hcl:"limits,block"`
	Log       *logBlock        `hcl:"log,block"`
	Metrics   *metricsBlock    `hcl:"metrics,block"`
	PluginDir string           `hcl:"plugin_dir,optional"`
	Plugins   []*pluginBlock   `hcl:"plugin,block"`
	Providers []*providerBlock `hcl:"provider,block"`
}

// Parse reads a configuration file and decodes what belongs to the host. The file is never nil: after errors it holds what
// could be read, enough to find a running daemon. An empty path means [DefaultPath].
func Parse(path string) (*File, Diagnostics) {
	if path == "" {
		path = DefaultPath()
	}
	f := &File{name: path, body: &hclsyntax.Body{}, harmless: map[int]bool{}}
	absolute, err := filepath.Abs(path)
	if err != nil {
		absolute = path
	}
	f.Path = absolute
	f.eval = evalContext(filepath.Dir(absolute))
	source, err := readBounded(path)
	if err != nil {
		f.found = append(f.found, unreadable(path, err))
		f.decodeHost()
		return f, f.diagnostics()
	}
	f.source = source
	parsed, diags := hclparse.NewParser().ParseHCL(source, path)
	f.found = append(f.found, diags...)
	if parsed != nil {
		if body, ok := parsed.Body.(*hclsyntax.Body); ok {
			f.body = body
		}
	}
	f.decodeHost()
	if diags.HasErrors() {
		// What else is wrong in a file that cannot be read to its end is mostly noise.
		f.found = firstOfEach(diags)
	}
	return f, f.diagnostics()
}

// WasRead reports whether there was a file that could be read, whatever is in it.
func (f *File) WasRead() bool { return f.source != nil }

// firstOfEach drops repetitions: one missing quote makes every later line an error of the same kind.
func firstOfEach(diags hcl.Diagnostics) hcl.Diagnostics {
	var kept hcl.Diagnostics
	for _, d := range diags {
		if !slices.ContainsFunc(kept, func(k *hcl.Diagnostic) bool { return k.Summary == d.Summary }) {
			kept = append(kept, d)
		}
	}
	return kept
}

func (f *File) decodeHost() {
	r := f.defaults()
	f.found = append(f.found, withoutEchoes(gohcl.DecodeBody(f.body, f.eval, r))...)
	f.Listen = f.listen(r.Listen)
	f.State = f.state(r.State)
	f.Telemetry = f.telemetry(r.Telemetry)
	f.Placement = f.placement(r.Placement)
	f.Limits = f.limits(r.Limits)
	f.Log = f.log(r.Log)
	f.Metrics = f.metrics(r.Metrics)
	f.PluginDir = f.expand(r.PluginDir)
	f.pluginBlocks(r.Plugins)
	f.providerBlocks(r.Providers)
}

// withoutEchoes drops gohcl's complaint about a value that is unknown because its function failed, which is said already.
func withoutEchoes(diags hcl.Diagnostics) (kept hcl.Diagnostics) {
	for _, d := range diags {
		echo := d.Summary == "Unsuitable value type" && d.Context != nil && slices.ContainsFunc(diags, func(cause *hcl.Diagnostic) bool {
			return cause != d && cause.Subject != nil && d.Context.Overlaps(*cause.Subject)
		})
		if !echo {
			kept = append(kept, d)
		}
	}
	return kept
}

func readBounded(path string) ([]byte, error) {
	file, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(raw) > maxFile {
		err = fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	return raw, err
}

// openRegular opens a regular file. It does not wait for the writer of a pipe that lies there instead.
func openRegular(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

func unreadable(path string, err error) *hcl.Diagnostic {
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Cannot read the configuration"}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.Summary = "No configuration file"
		d.Detail = fmt.Sprintf("There is no %s. Write one with \"noria init\", or name another with -config FILE or NORIA_CONFIG.", path)
	case errors.Is(err, fs.ErrPermission):
		d.Detail = fmt.Sprintf("%s may not be read by this user. Check its mode and owner.", path)
	default:
		d.Detail = fmt.Sprintf("%s: %v.", path, cause(err))
	}
	return d
}

// valueRange is where the value of an attribute stands, or its block's header when it is not set.
func valueRange(body hcl.Body, name string) *hcl.Range {
	if at, set := setRange(body, name); set {
		return &at
	}
	if body == nil {
		return nil
	}
	return body.MissingItemRange().Ptr()
}

func (f *File) fail(subject *hcl.Range, summary, format string, args ...any) {
	f.found = append(f.found, &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: subject,
	})
}
