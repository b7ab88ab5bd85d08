package sdk

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// maxFile bounds a file that an adapter reads.
const maxFile = 1 << 20

// Errors of files.
var (
	// ErrFileTooLarge is returned for a file above 1 MiB.
	ErrFileTooLarge = errors.New("file is larger than 1 MiB")
	// ErrFileOwner is returned for a file that belongs neither to this user nor to root.
	ErrFileOwner = errors.New("file belongs to another user")
)

// ReadJSONFile decodes a regular file of at most 1 MiB that belongs to this user or root, and returns its version, which
// changes when the file is written again and says nothing of its content. Errors name the file and never hold what stood
// in it; [fs.ErrNotExist] and [fs.ErrPermission] can be told apart with [errors.Is].
func ReadJSONFile(path string, into any) (version string, err error) {
	data, version, err := readFile(path)
	if err != nil {
		return "", err
	}
	if json.Unmarshal(data, into) != nil {
		return "", fmt.Errorf("read %s: not the JSON that was expected", path)
	}
	return version, nil
}

// readFile reads a regular file. It neither waits for a pipe that somebody put in its place nor reads without bound.
func readFile(path string) (data []byte, version string, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, "", err
	}
	if !info.Mode().IsRegular() {
		return nil, "", fmt.Errorf("read %s: not a regular file", path)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return nil, "", fmt.Errorf("read %s: %w", path, ErrFileOwner)
	}
	data, err = io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", path, err)
	}
	if len(data) > maxFile {
		return nil, "", fmt.Errorf("read %s: %w", path, ErrFileTooLarge)
	}
	return data, fileVersion(info), nil
}

func fileVersion(info fs.FileInfo) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d", info.ModTime().UnixNano(), info.Size()))
	return hex.EncodeToString(sum[:8])
}
