package plugin

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

const describeTime = 5 * time.Second

// Describe runs the verified copy of the executable with the argument describe: bounded, without a handshake, offline.
// The answer is checked, and remembered by the digest of the executable. Errors are *Failure.
func (c *Catalog) Describe(ctx context.Context, spec Spec) (*pluginv1.DescribeResponse, error) {
	path, digest, state, f := c.verified(spec)
	if f != nil {
		return nil, f.of(digest, state)
	}
	d, f := c.describe(ctx, spec, path, digest)
	if f != nil {
		return nil, f.of(digest, state)
	}
	return d, nil
}

func (c *Catalog) describe(ctx context.Context, spec Spec, path, digest string) (*pluginv1.DescribeResponse, *Failure) {
	if d := c.remembered(digest); d != nil {
		return d, nil
	}
	ctx, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	out := newOutput(c.logger.Named("plugin."+spec.Name), c.redactor)
	answer, status := runDescribe(ctx, path, filepath.Dir(spec.Path), out)
	failed := func(detail string) *Failure {
		return &Failure{Reason: ReasonDescribe, Detail: detail, Exit: status, Stderr: out.lastLines(), Permanent: true}
	}
	if ctx.Err() != nil {
		return nil, failed("executable did not describe itself in time")
	}
	d := &pluginv1.DescribeResponse{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(answer, d); err != nil || status != "exit status 0" {
		return nil, failed("executable does not describe itself")
	}
	if f := checkDescription(d, spec); f != nil {
		return nil, f
	}
	c.remember(digest, d)
	return d, nil
}

// runDescribe runs the executable like an adapter, in its own process group, and takes what it prints.
func runDescribe(ctx context.Context, path, dir string, out *output) (answer []byte, status string) {
	spawner := newSpawner()
	defer spawner.close()
	// The whole group is ended below, not the one process that exec would end.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), path, "describe")
	cmd.Dir = dir
	cmd.Env = environment(os.Environ(), nil, nil)
	p := newProcess(spawner, out, cmd, "")
	kept := &boundedBuffer{limit: wire.MaxMessage}
	p.takeStdout = kept
	if err := p.Start(ctx); err != nil {
		return nil, execDetail(err)
	}
	stop := context.AfterFunc(ctx, func() { p.end(0) })
	defer stop()
	<-p.exited
	return kept.Bytes(), p.exit()
}

func (c *Catalog) remembered(digest string) *pluginv1.DescribeResponse {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.described[digest]
}

func (c *Catalog) remember(digest string, d *pluginv1.DescribeResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.described[digest] = d
}

// boundedBuffer keeps the beginning and takes the rest.
type boundedBuffer struct {
	bytes.Buffer
	limit int
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if room := b.limit - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
