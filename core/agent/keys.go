package agent

import (
	"cmp"
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
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

const (
	clientKeyFile = "client.key"
	runKeysFile   = "run-keys.json"
	maxRunKeys    = 1024
	maxKeyFile    = 1 << 20
)

// keyring holds the key of this user's clients and the keys of single runs. It is safe for concurrent use.
//
// The client key is a file that the user may read. Of a run's key only its digest is kept, in a file, so that a client
// that is running goes on after the daemon was restarted. It ends with the process that it was made for.
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
	Runner   runner    `json:"runner"`
}

// openKeyring reads the keys in dir and makes the client key when there is none. Errors are *RefusedStartError.
func openKeyring(dir string) (*keyring, error) {
	k := &keyring{dir: dir, runs: map[string]runKey{}}
	if err := k.openClient(); err != nil {
		return nil, err
	}
	raw, err := readPrivateFile(filepath.Join(dir, runKeysFile))
	if err == nil {
		// A file that cannot be read as keys costs the runs of before, nothing else.
		if json.Unmarshal(raw, &k.runs) != nil || k.runs == nil {
			k.runs = map[string]runKey{}
		}
	}
	k.forgetEnded()
	return k, nil
}

func (k *keyring) openClient() error {
	key, err := readPrivateFile(filepath.Join(k.dir, clientKeyFile))
	text := strings.TrimSpace(string(key))
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && text == "":
		_, err := k.Rotate()
		return refuseStart(err, "see that there is room in the state directory, and that this user may write there")
	case err != nil:
		return refuseStart(fmt.Errorf("read client key: %w", err), "remove what lies there: another key is made at the next start")
	}
	k.client = sha256.Sum256([]byte(text))
	return nil
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

// errUnsaved says that keys are as they should be, and that a daemon that is started anew will not know them.
var errUnsaved = errors.New("the keys of runs were not written")

// NewRun makes a key for one run of provider's client. The id is the key's digest and no secret. With errUnsaved there is a
// key all the same.
func (k *keyring) NewRun(provider string, runner runner, now time.Time) (id, key string, err error) {
	key = newKey("noria_run_")
	id = digest(key)
	if !k.addRun(id, runKey{Provider: provider, Made: now, Runner: runner}) {
		return "", "", fmt.Errorf("make run key: %d runs are open", maxRunKeys)
	}
	return id, key, k.save()
}

// Runs are the open runs, the oldest first.
func (k *keyring) Runs() []openRun {
	k.mu.RLock()
	defer k.mu.RUnlock()
	runs := make([]openRun, 0, len(k.runs))
	for id, run := range k.runs {
		runs = append(runs, openRun{id: id, runKey: run})
	}
	slices.SortFunc(runs, func(a, b openRun) int { return cmp.Or(a.Made.Compare(b.Made), cmp.Compare(a.id, b.id)) })
	return runs
}

// openRun is a run whose key is accepted.
type openRun struct {
	id string
	runKey
}

// RevokeRun ends the key of that id. One that is not known is no error.
func (k *keyring) RevokeRun(id string) error { return k.revoke(id) }

// RevokeRuns ends the keys of all runs and returns how many there were.
func (k *keyring) RevokeRuns() (int, error) {
	runs := k.Runs()
	return len(runs), k.revoke(idsOf(runs)...)
}

// RevokeEnded ends the keys of runs whose process is gone, without a word of its own (it was killed), and returns how many
// there were.
func (k *keyring) RevokeEnded() (int, error) {
	ended := k.forgetEnded()
	if ended == 0 {
		return 0, nil
	}
	return ended, k.save()
}

func (k *keyring) forgetEnded() int {
	ended := slices.DeleteFunc(k.Runs(), func(run openRun) bool { return !run.Runner.ended() })
	return k.dropRuns(idsOf(ended)...)
}

func (k *keyring) revoke(ids ...string) error {
	if k.dropRuns(ids...) == 0 {
		return nil
	}
	return k.save()
}

func idsOf(runs []openRun) []string {
	ids := make([]string, len(runs))
	for i, run := range runs {
		ids[i] = run.id
	}
	return ids
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

// dropRuns returns how many of them there were.
func (k *keyring) dropRuns(ids ...string) (dropped int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range ids {
		if _, known := k.runs[id]; known {
			delete(k.runs, id)
			dropped++
		}
	}
	return dropped
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
		return fmt.Errorf("%w: %w", errUnsaved, err)
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
