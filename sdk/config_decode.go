package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"
)

// AttributeError says which attribute of a block is wrong. It never holds the attribute's value.
type AttributeError struct {
	Attribute string
	Problem   string
}

// Error names the attribute and the problem.
func (e *AttributeError) Error() string {
	return fmt.Sprintf("attribute %s: %s", e.Attribute, e.Problem)
}

// decodeBlock sets the tagged fields of the struct that into points to: from the block, else from the default, else to
// zero. Fields without a tag stay. All attributes that are wrong are reported, joined.
func decodeBlock(raw json.RawMessage, into any) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() || target.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("decode block: %T is no pointer to a struct", into)
	}
	attributes, err := attributesOf(target.Elem().Type())
	if err != nil {
		return fmt.Errorf("decode block: %w", err)
	}
	values, err := blockValues(raw)
	if err != nil {
		return fmt.Errorf("decode block: %w", err)
	}
	var problems []error
	for _, a := range attributes {
		field := target.Elem().Field(a.field)
		field.SetZero()
		value, given := values[a.name]
		switch {
		case !given && a.required:
			problems = append(problems, &AttributeError{Attribute: a.name, Problem: "is required"})
			continue
		case !given && a.defaultJSON == nil:
			continue
		case !given:
			value = a.defaultJSON
		}
		if err := decodeValue(value, field); err != nil {
			problems = append(problems, &AttributeError{Attribute: a.name, Problem: err.Error()})
		}
	}
	return errors.Join(problems...)
}

// blockValues splits the JSON object of a block; null counts as not given.
func blockValues(raw json.RawMessage) (map[string]json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	if len(raw) == 0 {
		return values, nil
	}
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, errors.New("not a JSON object")
	}
	for name, value := range values {
		if bytes.Equal(value, []byte("null")) {
			delete(values, name)
		}
	}
	return values, nil
}

// decodeValue reads one attribute. Its errors say what was expected and never what was there.
func decodeValue(raw json.RawMessage, field reflect.Value) error {
	if field.Type() == reflect.TypeFor[time.Duration]() {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return errors.New(`must be a duration such as "45s"`)
		}
		duration, err := time.ParseDuration(text)
		if err != nil {
			return errors.New(`must be a duration such as "45s"`)
		}
		field.SetInt(int64(duration))
		return nil
	}
	if err := json.Unmarshal(raw, field.Addr().Interface()); err != nil {
		return errors.New("must be " + expectation(field.Type()))
	}
	return nil
}

func expectation(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list of strings"
	case reflect.Map:
		return "a map of strings"
	}
	return "a string"
}
