package agent

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/state"
)

// ExportState writes all bindings as JSON.
func (d *daemon) ExportState(_ context.Context, w io.Writer) error {
	if err := d.store.Export(w, d.clock.Now()); err != nil {
		return fmt.Errorf("export bindings: %w", err)
	}
	return nil
}

// ImportState takes over exported bindings, all or none, and returns when they are durable.
func (d *daemon) ImportState(ctx context.Context, r io.Reader) (api.StateImport, error) {
	imported, err := d.store.Import(r, d.clock.Now())
	if errors.Is(err, state.ErrInvalid) {
		return api.StateImport{}, &api.Error{
			Code: api.CodeInvalid, Message: err.Error(), Remedy: "give what \"noria state export\" wrote",
		}
	}
	if err != nil {
		return api.StateImport{}, err
	}
	if err := d.store.Durable(ctx, imported.Sequence); err != nil {
		return api.StateImport{}, fmt.Errorf("import bindings: %w", err)
	}
	return api.StateImport{Added: imported.Added, Kept: imported.Kept}, nil
}
