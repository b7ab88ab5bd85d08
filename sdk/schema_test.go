package sdk

import (
	"strings"
	"testing"
	"time"
)

func TestAnUnusableTagIsAnErrorThatNamesTheField(t *testing.T) {
	tests := []struct {
		name  string
		block any
		want  string
	}{
		{"no struct", 1, "not a struct"},
		{"unsupported type", struct {
			Field []int `hcl:"field"`
		}{}, "Field: type []int is not supported"},
		{"unknown option", struct {
			Field string `hcl:"field,optional"`
		}{}, `Field: unknown option "optional"`},
		{"name in another style", struct {
			Field string `hcl:"tokenFile"`
		}{}, `Field: attribute name "tokenFile" is not in snake_case`},
		{"name used twice", struct {
			First  string `hcl:"field"`
			Second string `hcl:"field"`
		}{}, `Second: attribute "field" is there twice`},
		{"required with a default", struct {
			Field string `hcl:"field,required" default:"x"`
		}{}, "Field: attribute is required and has a default"},
		{"default of another type", struct {
			Field time.Duration `hcl:"field" default:"45"`
		}{}, "Field: read default: must be a duration"},
		{"default that is no bool", struct {
			Field bool `hcl:"field" default:"perhaps"`
		}{}, `Field: read default: "perhaps" is no bool`},
		{"default list that is no JSON", struct {
			Field []string `hcl:"field" default:"a, b"`
		}{}, "Field: read default:"},
		{"unexported field", struct {
			field string `hcl:"field"`
		}{}, "field: field with an hcl tag is not exported"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := schemaOf(test.block); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestNoStructHasNoAttributes(t *testing.T) {
	if attributes, err := schemaOf(nil); err != nil || attributes != nil {
		t.Errorf("%v, %v", attributes, err)
	}
}
