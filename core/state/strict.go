package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// marshal encodes without the escapes that HTML needs, which would make six bytes of one.
func marshal(buffer *bytes.Buffer, value any) ([]byte, error) {
	buffer.Reset()
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), err
}

// decodeStrictly reads one JSON value whose fields are all known, each given once.
func decodeStrictly(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return checkNames(json.NewDecoder(bytes.NewReader(data)))
}

// checkNames refuses a name that comes twice in one object: encoding/json would take the last without a word.
func checkNames(decoder *json.Decoder) error {
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	object := token == json.Delim('{')
	if !object && token != json.Delim('[') {
		return nil
	}
	seen := map[string]bool{}
	for decoder.More() {
		if object {
			token, err := decoder.Token()
			if err != nil {
				return err
			}
			name, _ := token.(string)
			if name = strings.ToLower(name); seen[name] {
				return errors.New("a name twice in one object")
			}
			seen[name] = true
		}
		if err := checkNames(decoder); err != nil {
			return err
		}
	}
	_, err = decoder.Token()
	return err
}
