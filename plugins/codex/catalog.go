package codex

import (
	"context"
	"fmt"

	"github.com/noria-dev/noria/sdk"
)

const (
	// maxModels and maxPages bound a catalog.
	maxModels = 200
	maxPages  = 10
)

// ListModels asks the official client which models the account can use.
func (a *Adapter) ListModels(ctx context.Context, account sdk.Account) (sdk.Catalog, error) {
	s, err := settingsOf(account)
	if err != nil {
		return sdk.Catalog{}, err
	}
	catalog, err := ask(ctx, a, s, func(server *appServer) (sdk.Catalog, error) {
		models, err := server.models()
		return sdk.Catalog{Models: models, ClientVersion: server.version(), Source: "model/list", ReadAt: a.now()}, err
	})
	if err != nil {
		return sdk.Catalog{}, fmt.Errorf("list models: %w", withClass(err))
	}
	return catalog, nil
}

type listedModel struct {
	ID          string `json:"id"`
	DisplayName string `json:"displayName"`
	Upgrade     string `json:"upgrade"`
	Hidden      bool   `json:"hidden"`
	IsDefault   bool   `json:"isDefault"`
	Efforts     []struct {
		Effort string `json:"reasoningEffort"`
	} `json:"supportedReasoningEfforts"`
	DefaultEffort string `json:"defaultReasoningEffort"`
}

func (s *appServer) models() ([]sdk.Model, error) {
	var models []sdk.Model
	cursor := ""
	for range maxPages {
		params := map[string]any{"includeHidden": true}
		if cursor != "" {
			params["cursor"] = cursor
		}
		var page struct {
			Data       []listedModel `json:"data"`
			NextCursor string        `json:"nextCursor"`
		}
		if err := s.rpc.Call("model/list", params, &page); err != nil {
			return nil, err
		}
		for _, m := range page.Data {
			if len(models) == maxModels {
				return models, nil
			}
			models = append(models, m.model())
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	return models, nil
}

func (m listedModel) model() sdk.Model {
	model := sdk.Model{ID: m.ID, DisplayName: m.DisplayName, DefaultEffort: m.DefaultEffort,
		Default: m.IsDefault, Hidden: m.Hidden, Upgrade: m.Upgrade}
	for _, e := range m.Efforts {
		model.Efforts = append(model.Efforts, e.Effort)
	}
	return model
}
