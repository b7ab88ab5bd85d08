// Command noria is the daemon and every command.
package main

import (
	"context"
	"os"
	"time"

	"github.com/noria-dev/noria/core/agent"
	"github.com/noria-dev/noria/core/cli"
)

// version is set by the build.
var version = "dev"

func main() {
	program := &cli.Program{
		Version: version, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Now: time.Now, Location: time.Local, Serve: serve,
	}
	os.Exit(program.Main(os.Args[1:]))
}

func serve(ctx context.Context, options cli.ServeOptions) (exit int, err error) {
	err = agent.Run(ctx, agent.Options{
		ConfigPath: options.ConfigPath, Dev: options.Dev, Reload: options.Reload, Cut: options.Cut,
		Version: version, Stdout: os.Stdout, Stderr: os.Stderr,
	})
	return agent.ExitCode(err), err
}
