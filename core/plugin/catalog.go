package plugin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/internal/owner"
	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// bundledPrefix begins the names of bundled adapters' executables.
const bundledPrefix = "noria-provider-"

// Catalog knows executables without running them as adapters: where they are, whether they may be trusted, what they
// say of themselves. It is safe for concurrent use.
type Catalog struct {
	options      CatalogOptions
	logger       hclog.Logger
	redactor     *events.Redactor
	bundledDir   string
	bundledOwner int
	// pluginDir is options.PluginDir without links; empty while there is none.
	pluginDir string
	cache     cache

	mu        sync.Mutex // guards described
	described map[string]*pluginv1.DescribeResponse
}

// NewCatalog returns a catalog. It makes the cache directory if there is none.
func NewCatalog(options CatalogOptions) (*Catalog, error) {
	c := &Catalog{options: options, logger: options.Logger, redactor: options.Redactor, described: map[string]*pluginv1.DescribeResponse{}}
	if c.logger == nil {
		c.logger = hclog.NewNullLogger()
	}
	if c.redactor == nil {
		c.redactor = events.NewRedactor()
	}
	if err := c.findBundled(); err != nil {
		return nil, err
	}
	if options.PluginDir != "" {
		resolved, err := filepath.EvalSymlinks(options.PluginDir)
		switch {
		case err == nil:
			c.pluginDir = resolved
		case !errors.Is(err, os.ErrNotExist):
			return nil, fmt.Errorf("resolve plugin directory: %w", err)
		}
	}
	dir, err := privateDir(options.CacheDir)
	if err != nil {
		return nil, fmt.Errorf("open cache of verified copies: %w", err)
	}
	c.cache = cache{dir: dir}
	return c, nil
}

func (c *Catalog) findBundled() error {
	dir := c.options.BundledDir
	if dir == "" {
		executable, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find own executable: %w", err)
		}
		if executable, err = filepath.EvalSymlinks(executable); err != nil {
			return fmt.Errorf("find own executable: %w", err)
		}
		info, err := os.Stat(executable)
		if err != nil {
			return fmt.Errorf("examine own executable: %w", err)
		}
		c.bundledDir, c.bundledOwner = filepath.Dir(executable), owner.Of(info)
		return nil
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("find bundled adapters: %w", err)
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return fmt.Errorf("find bundled adapters: %w", err)
	}
	c.bundledDir, c.bundledOwner = resolved, owner.Of(info)
	return nil
}

// Bundled lists the adapters beside noria's own executable, by name, as specs without configuration.
func (c *Catalog) Bundled() ([]Spec, error) {
	entries, err := os.ReadDir(c.bundledDir)
	if err != nil {
		return nil, fmt.Errorf("list bundled adapters: %w", err)
	}
	var specs []Spec
	for _, entry := range entries {
		name, ok := strings.CutPrefix(entry.Name(), bundledPrefix)
		if !ok || !wire.IsName(name) {
			continue
		}
		specs = append(specs, Spec{Name: name, Provider: name, Path: filepath.Join(c.bundledDir, entry.Name()), Bundled: true})
	}
	slices.SortFunc(specs, func(a, b Spec) int { return strings.Compare(a.Name, b.Name) })
	return specs, nil
}

// Verification is the result of looking at an executable.
type Verification struct {
	// SHA256 of the executable; empty when it could not be read.
	SHA256 string
	Digest DigestState
	Source string
	// Err is nil when it may be run; else a *Failure.
	Err error
}

// Verify looks at an executable as a start would, and copies and runs nothing.
func (c *Catalog) Verify(spec Spec) Verification {
	v := Verification{Digest: DigestUnknown, Source: c.Source(spec)}
	file, f := c.trusted(spec)
	if f != nil {
		v.Err = f
		return v
	}
	defer file.Close()
	digest, err := digestOf(file)
	if err != nil {
		v.Err = &Failure{Reason: ReasonNotFound, Detail: "executable cannot be read", Permanent: true}
		return v
	}
	v.SHA256 = digest
	v.Digest, f = judge(spec, digest)
	if f != nil {
		v.Err = f
	}
	return v
}

// Pin returns the digest to configure for the executable.
func (c *Catalog) Pin(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("pin plugin: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("pin plugin %s: not a regular file", path)
	}
	digest, err := digestOf(file)
	if err != nil {
		return "", fmt.Errorf("pin plugin: %w", err)
	}
	return digest, nil
}

// judge compares an executable's digest with what the spec demands.
func judge(spec Spec, digest string) (DigestState, *Failure) {
	want := cleanDigest(spec.SHA256)
	switch {
	case want == digest:
		return DigestOK, nil
	case want != "" && !spec.Dev:
		return DigestMismatch, &Failure{Reason: ReasonDigestMismatch, Permanent: true,
			Detail: "executable is not the one that was pinned; if you changed it, pin it again"}
	case spec.Dev:
		return DigestDev, nil
	case spec.Bundled:
		return DigestOK, nil
	}
	return DigestUnpinned, &Failure{Reason: ReasonUnpinned, Permanent: true,
		Detail: "plugin needs sha256 in noria.hcl; noria plugins pin prints it"}
}

// verified returns a private copy of the executable that may be run, under its digest as name.
func (c *Catalog) verified(spec Spec) (path, digest string, state DigestState, f *Failure) {
	file, f := c.trusted(spec)
	if f != nil {
		return "", "", DigestUnknown, f
	}
	defer file.Close()
	path, err := c.cache.put(file, func(found string) error {
		digest = found
		if state, f = judge(spec, digest); f != nil {
			return f
		}
		return nil
	})
	if err != nil && f == nil {
		c.logger.Warn("copy executable", "plugin", spec.Name, "error", err)
		f = &Failure{Reason: ReasonCopyFailed, Detail: "executable cannot be copied into the cache"}
	}
	return path, digest, state, f
}
