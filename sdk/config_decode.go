package sdk

import (
	"encoding/json"
	"fmt"
)

func decodeBlock(raw json.RawMessage, into any) error {
	return fmt.Errorf("unimplemented %d %v", len(raw), into)
}
