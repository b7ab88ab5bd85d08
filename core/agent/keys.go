package agent

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

const (
	clientKeyFile = "client.key"
	runKeysFile   = "run-keys.json"
	// A run whose end was never reported (the machine went down) loses its key after this time.
	runKeyLifetime = 30 * 24 * time.Hour
	maxRunKeys     = 1024
	maxKeyFile     = 1 << 20
)

// keyring holds the key of this user's clients and the keys of single runs. It is safe for concurrent use.
//
// The client key is a file that the user may read. Of a run's key only its digest is kept, in a file, so that a client
// that is running goes on after the daemon was restarted.
type keyring struct {
	dir string

	saving sync.Mutex   // orders writes of the file; never taken on a request's path
	mu     sync.RWMutex // guards client and runs
	client [sha256.Size]byte
	runs   map[string]runKey
}

type runKey struct {
	Provider string    `json:"provider"`
	Made     time.Time `json:"made"`
}

// openKeyring reads the keys in dir and makes the client key when there is none.
func openKeyring(dir string, now time.Time) (*keyring, error) {
	k := &keyring{dir: dir, runs: map[string]runKey{}}
	key, err := readPrivateFile(filepath.Join(dir, clientKeyFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := k.Rotate(); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, fmt.Errorf("read client key: %w", err)
	default:
		k.client = sha256.Sum256([]byte(strings.TrimSpace(string(key))))
	}
	raw, err := readPrivateFile(filepath.Join(dir, runKeysFile))
	if err == nil {
		// A file that cannot be read as keys costs the runs of before, nothing else.
		if json.Unmarshal(raw, &k.runs) != nil || k.runs == nil {
			k.runs = map[string]runKey{}
		}
	}
	for digest, run := range k.runs {
		if now.Sub(run.Made) > runKeyLifetime {
			delete(k.runs, digest)
		}
	}
	return k, nil
}

// Client returns the client key.
func (k *keyring) Client() (string, error) {
	key, err := readPrivateFile(filepath.Join(k.dir, clientKeyFile))
	if err != nil {
		return "", fmt.Errorf("read client key: %w", err)
	}
	return strings.TrimSpace(string(key)), nil
}

// Rotate replaces the client key.
func (k *keyring) Rotate() (string, error) {
	key := newKey("noria_")
	if err := renameio.WriteFile(filepath.Join(k.dir, clientKeyFile), []byte(key+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write client key: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.client = sha256.Sum256([]byte(key))
	return key, nil
}

// NewRun makes a key for one run of provider's client. The id is the key's digest and no secret.
func (k *keyring) NewRun(provider string, now time.Time) (id, key string, err error) {
	key = newKey("noria_run_")
	id = digest(key)
	if !k.addRun(id, runKey{Provider: provider, Made: now}) {
		return "", "", fmt.Errorf("make run key: %d runs are open", maxRunKeys)
	}
	if err := k.save(); err != nil {
		k.dropRun(id)
		return "", "", err
	}
	return id, key, nil
}

// RevokeRun ends the key of that id. One that is not known is no error.
func (k *keyring) RevokeRun(id string) error {
	k.dropRun(id)
	return k.save()
}

func (k *keyring) addRun(digest string, run runKey) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.runs) >= maxRunKeys {
		return false
	}
	k.runs[digest] = run
	return true
}

func (k *keyring) dropRun(digest string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.runs, digest)
}

// Allowed reports whether key may use provider.
func (k *keyring) Allowed(provider, key string) bool {
	if key == "" || len(key) > 256 {
		return false
	}
	sum := sha256.Sum256([]byte(key))
	k.mu.RLock()
	defer k.mu.RUnlock()
	if subtle.ConstantTimeCompare(sum[:], k.client[:]) == 1 {
		return true
	}
	// The look-up compares digests: how long it takes says nothing of a key.
	run, ok := k.runs[hex.EncodeToString(sum[:])]
	return ok && run.Provider == provider
}

// save writes the runs as they are now.
func (k *keyring) save() error {
	k.saving.Lock()
	defer k.saving.Unlock()
	k.mu.RLock()
	raw, err := json.Marshal(k.runs)
	k.mu.RUnlock()
	if err != nil {
		return fmt.Errorf("marshal run keys: %w", err)
	}
	if err := renameio.WriteFile(filepath.Join(k.dir, runKeysFile), raw, 0o600); err != nil {
		return fmt.Errorf("write run keys: %w", err)
	}
	return nil
}

func digest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

func newKey(prefix string) string {
	var b [32]byte
	// crypto/rand never fails since Go 1.24.
	_, _ = rand.Read(b[:])
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// readPrivateFile reads a small regular file that nobody else can read.
func readPrivateFile(path string) ([]byte, error) {
	f, err := openNoFollow(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s: must be a regular file with mode 0600, is %s", path, info.Mode())
	}
	return io.ReadAll(io.LimitReader(f, maxKeyFile))
}

func openNoFollow(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
}
