package claude

import (
	"github.com/noria-dev/noria/plugins/internal/adaptertest"
	"github.com/noria-dev/noria/sdk"
)

// evidence is what the host would hand over of an answer.
func evidence(e adaptertest.Exchange) sdk.Response {
	return e.Response("claude-opus-5-5", stream().Inspected)
}
