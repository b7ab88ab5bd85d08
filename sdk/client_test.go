package sdk

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func shell(script string) Command { return Command{Argv: []string{"sh", "-c", script}} }

func TestRunClientGivesOutputAndExitStatus(t *testing.T) {
	out, err := RunClient(t.Context(), shell(`echo told; echo hidden >&2; exit 3`), time.Minute)
	if err != nil || out.ExitCode != 3 || string(out.Stdout) != "told\n" {
		t.Fatalf("RunClient = %q, %d, %v", out.Stdout, out.ExitCode, err)
	}
}

func TestRunClientEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := RunClient(ctx, shell(`sleep 60 & sleep 60`), time.Minute); !errors.Is(err, context.Canceled) {
		t.Fatalf("RunClient = %v, want a cancelled context", err)
	}
}

func TestRunClientEndsWithItsPatience(t *testing.T) {
	if _, err := RunClient(t.Context(), shell(`sleep 60 & sleep 60`), 50*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("RunClient = %v, want a deadline", err)
	}
}

func TestRunClientBoundsItsOutput(t *testing.T) {
	if _, err := RunClient(t.Context(), shell(`head -c 3000000 /dev/zero`), time.Minute); !errors.Is(err, ErrClientOutput) {
		t.Fatalf("RunClient = %v, want %v", err, ErrClientOutput)
	}
}

func TestClientEnvironmentHoldsNoOtherCredential(t *testing.T) {
	own := []string{"PATH=/bin", "A_API_KEY=x", "B_TOKEN=x", "C_BASE_URL=x", "GONE=x", "HOME=/old"}
	command := Command{Env: map[string]string{"HOME": "/new"}, Unset: []string{"GONE"}}
	got := clientEnvironment(own, command)
	if !slices.Equal(got, []string{"PATH=/bin", "HOME=/new"}) {
		t.Errorf("clientEnvironment = %v", got)
	}
}

func TestReadJSONFileNamesTheFileAndNothingInIt(t *testing.T) {
	dir := t.TempDir()
	path := dir + "/login.json"
	write := func(content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var into struct {
		Token string `json:"token"`
	}
	write(`{"token":"first"}`)
	first, err := ReadJSONFile(path, &into)
	if err != nil || into.Token != "first" || first == "" {
		t.Fatalf("ReadJSONFile = %q, %v, %q", first, err, into.Token)
	}
	write(`{"token":"second one"}`)
	if second, err := ReadJSONFile(path, &into); err != nil || second == first {
		t.Errorf("version after a change = %q, %v; want another than %q", second, err, first)
	}
	for name, content := range map[string]string{"a broken document": `{"token":"CANARY`, "another type": `{"token":["CANARY"]}`} {
		write(content)
		if _, err := ReadJSONFile(path, &into); err == nil || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: error = %v", name, err)
		}
	}
	write(strings.Repeat(" ", maxFile+1))
	if _, err := ReadJSONFile(path, &into); !errors.Is(err, ErrFileTooLarge) {
		t.Errorf("too large: error = %v", err)
	}
	if _, err := ReadJSONFile(dir, &into); err == nil {
		t.Error("a directory was read")
	}
	if _, err := ReadJSONFile(dir+"/none", &into); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent: error = %v", err)
	}
}

func TestCredentialsComeFromValueFileOrCommand(t *testing.T) {
	path := t.TempDir() + "/token"
	if err := os.WriteFile(path, []byte("made-up\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	reader := NewCredentials()
	var generations []string
	for _, c := range []Credential{{Value: "made-up"}, {File: path}, {Command: []string{"echo", "made-up"}}} {
		secret, generation, err := reader.Read(t.Context(), c)
		if err != nil || string(secret) != "made-up" {
			t.Fatalf("Read = %q, %v", string(secret), err)
		}
		generations = append(generations, generation)
	}
	if generations[0] != generations[1] || generations[1] != generations[2] {
		t.Errorf("one credential has generations %v", generations)
	}
	if reader.Generation("other") == generations[0] {
		t.Error("two credentials have one generation")
	}
	if NewCredentials().Generation("made-up") == generations[0] {
		t.Error("a generation is a fingerprint that holds outside its process")
	}
	for name, c := range map[string]struct {
		credential Credential
		want       error
	}{
		"nothing configured": {Credential{}, ErrNoCredential},
		"an empty command":   {Credential{Command: []string{"true"}}, ErrEmptyCredential},
		"an absent file":     {Credential{File: path + "x"}, os.ErrNotExist},
	} {
		_, _, err := reader.Read(t.Context(), c.credential)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: error = %v, want %v", name, err, c.want)
		}
		if got := CredentialRefusal(err); got != RefusalSignedOut {
			t.Errorf("%s: refused as %v, want signed out", name, got)
		}
	}
	for name, c := range map[string]Credential{"a failing command": {Command: []string{"false"}}, "a folder": {File: t.TempDir()}} {
		_, _, err := reader.Read(t.Context(), c)
		if got := CredentialRefusal(err); err == nil || got != RefusalTemporary {
			t.Errorf("%s: %v refused as %v, want temporary", name, err, got)
		}
	}
	if _, _, err := reader.Read(t.Context(), Credential{Command: []string{"sh", "-c", "echo CANARY; exit 1"}}); err == nil || strings.Contains(err.Error(), "CANARY\n") {
		t.Errorf("a failing command: error = %v", err)
	}
}
