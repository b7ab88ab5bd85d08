package agent

import (
	"context"
	"io"

	"github.com/noria-dev/noria/core/api"
)

// ExportState writes all bindings for another machine.
func (d *daemon) ExportState(_ context.Context, w io.Writer) error {
	return d.store.Export(w, d.clock.Now())
}

// ImportState takes over exported bindings and returns when they are durable.
func (d *daemon) ImportState(ctx context.Context, r io.Reader) (api.StateImport, error) {
	done, err := d.store.Import(r, d.clock.Now())
	if err != nil {
		return api.StateImport{}, &api.Error{Code: api.CodeInvalid, Message: err.Error(), Remedy: "nothing was taken over"}
	}
	if err := d.store.Durable(ctx, done.Sequence); err != nil {
		return api.StateImport{}, err
	}
	return api.StateImport{Added: done.Added, Kept: done.Kept}, nil
}
