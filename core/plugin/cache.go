package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// cache holds private copies of executables, each named by its digest. What was verified is what is executed: nobody can
// change a file between the check and the start, and it works for scripts as well.
type cache struct{ dir string }

const (
	freshPrefix = "fresh-"
	// cacheAge after which a copy that no start has used is removed.
	cacheAge = 30 * 24 * time.Hour
)

// put makes sure that there is a copy of the executable which accept agrees to by its digest, and returns its path.
// accept's refusal is returned as it is.
func (c cache) put(from io.ReadSeeker, accept func(digest string) error) (path string, err error) {
	digest, err := digestOf(from)
	if err != nil {
		return "", err
	}
	if c.has(digest) {
		return c.path(digest), accept(digest)
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	fresh, digest, err := c.copy(from)
	if err != nil {
		return "", err
	}
	if err = accept(digest); err == nil {
		err = os.Rename(fresh, c.path(digest))
	}
	if err != nil {
		_ = os.Remove(fresh)
		return "", err
	}
	return c.path(digest), nil
}

func (c cache) path(digest string) string { return filepath.Join(c.dir, digest) }

// has reports whether the cache holds an intact copy, and marks it used.
func (c cache) has(digest string) bool {
	file, err := os.Open(c.path(digest))
	if err != nil {
		return false
	}
	defer file.Close()
	found, err := digestOf(file)
	if err != nil || found != digest {
		return false
	}
	now := time.Now()
	return os.Chtimes(c.path(digest), now, now) == nil
}

// copy makes a copy without a name of its own, and says what was copied: the file may have changed since it was hashed.
func (c cache) copy(from io.Reader) (path, digest string, err error) {
	to, err := os.CreateTemp(c.dir, freshPrefix)
	if err != nil {
		return "", "", err
	}
	hash := sha256.New()
	if _, err = io.Copy(io.MultiWriter(to, hash), limited(from)); err == nil {
		err = to.Chmod(0o500)
	}
	if closed := to.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(to.Name())
		return "", "", fmt.Errorf("copy: %w", err)
	}
	return to.Name(), hex.EncodeToString(hash.Sum(nil)), nil
}

// sweep removes what crashes left and what was not used for long.
func (c cache) sweep(now time.Time) {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		age := now.Sub(info.ModTime())
		left := strings.HasPrefix(entry.Name(), freshPrefix) && age > time.Hour
		if left || digestPattern.MatchString(entry.Name()) && age > cacheAge {
			_ = os.Remove(filepath.Join(c.dir, entry.Name()))
		}
	}
}

func digestOf(r io.Reader) (string, error) {
	hash := sha256.New()
	if _, err := io.Copy(hash, limited(r)); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
