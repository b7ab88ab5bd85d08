package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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

// decodeStrictly reads one JSON value whose fields are all known, each given once, and none of them null: what is unknown is
// left out.
func decodeStrictly(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return checkValue("", json.NewDecoder(bytes.NewReader(data)))
}

// checkValue refuses, in the value of a name, what encoding/json takes without a word: the last of two fields of one name, and
// null for zero.
func checkValue(name string, decoder *json.Decoder) error {
	token, err := decoder.Token()
	switch {
	case err != nil:
		return err
	case token == nil && name != "blockers": // an account that has none any more is written with this null
		return fmt.Errorf("%.64q is null", name)
	case token == json.Delim('{'):
		return checkFields(decoder)
	case token != json.Delim('['):
		return nil
	}
	for decoder.More() {
		if err := checkValue(name, decoder); err != nil {
			return err
		}
	}
	_, err = decoder.Token()
	return err
}

func checkFields(decoder *json.Decoder) error {
	seen := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		name := strings.ToLower(token.(string)) // a name, by JSON's grammar
		if seen[name] {
			return fmt.Errorf("%.64q is given twice", name)
		}
		seen[name] = true
		if err := checkValue(name, decoder); err != nil {
			return err
		}
	}
	_, err := decoder.Token()
	return err
}
