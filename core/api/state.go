package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// maxState bounds exported bindings.
const maxState = 64 << 20

// StateImport counts what an import did.
type StateImport struct {
	// Added bindings, and those Kept because the daemon has a newer one of the same session and model.
	Added int `json:"added"`
	Kept  int `json:"kept"`
}

func (s *Server) exportState(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if err := s.daemon.ExportState(r.Context(), w); err != nil {
		s.logger.Warn("export of bindings ended early", "error", err)
		// Something may have gone out already: a connection that is cut is no complete answer.
		panic(http.ErrAbortHandler)
	}
}

func (s *Server) importState(r *http.Request) (StateImport, error) {
	return s.daemon.ImportState(r.Context(), r.Body)
}

// ExportState writes all bindings as JSON.
func (c *Client) ExportState(ctx context.Context, w io.Writer) error {
	answer, err := c.do(ctx, http.MethodGet, "state", nil, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(w, answer.Body); err != nil {
		return fmt.Errorf("export bindings: %w", err)
	}
	return nil
}

// ImportState takes over what ExportState wrote.
func (c *Client) ImportState(ctx context.Context, r io.Reader) (StateImport, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxState+1))
	switch {
	case err != nil:
		return StateImport{}, fmt.Errorf("read bindings: %w", err)
	case len(raw) > maxState:
		return StateImport{}, Errorf(CodeInvalid, "these are more than %d bytes of bindings", maxState)
	case !json.Valid(raw):
		return StateImport{}, &Error{Code: CodeInvalid, Message: "this is no JSON", Remedy: "give what \"noria state export\" wrote"}
	}
	return call[StateImport](ctx, c, http.MethodPost, "state", nil, json.RawMessage(raw))
}
