// Command noria is the daemon and every command.
package main

import (
	"os"
	"time"

	"github.com/noria-dev/noria/core/cli"
)

// version is set by the build.
var version = "dev"

func main() {
	program := &cli.Program{
		Version: version, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Now: time.Now, Location: time.Local,
	}
	os.Exit(program.Main(os.Args[1:]))
}
