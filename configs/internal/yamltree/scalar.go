package yamltree

import (
	"math"
	"strconv"
	"strings"
)

// Text writes s as a scalar that is read back as the same text.
func Text(s string) string {
	if isPlain(s) {
		return s
	}
	return strconv.Quote(s)
}

// isPlain reports whether a text needs no quotation marks, neither in block nor in
// flow style.
func isPlain(s string) bool {
	if s == "" || strings.EqualFold(s, "null") || LooksLikeOther(s) {
		return false
	}
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' || r == '/'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789.-+=@*", r)) {
			// A colon is fine inside of hdfs://name:8020/path.
			if r != ':' || i == 0 || i+1 == len(s) || s[i+1] != '/' && (s[i+1] < '0' || s[i+1] > '9') {
				return false
			}
		}
	}
	return true
}

// LooksLikeOther reports whether YAML takes a plain scalar for something other than
// text.
func LooksLikeOther(s string) bool {
	if s == "true" || s == "false" {
		return true
	}
	_, err := ParseFloat(s)
	return err == nil
}

// ParseFloat reads a number as job files allow it: with underscores, but without Go's other
// notations, such as hexadecimal digits and Inf.
func ParseFloat(s string) (float64, error) { return strconv.ParseFloat(CleanNumber(s), 64) }

// CleanNumber removes underscores. It returns "?" for what Go's parsers accept as a
// number and a job file does not, such as hexadecimal digits and Inf.
func CleanNumber(s string) string {
	s = strings.ReplaceAll(s, "_", "")
	if strings.Trim(s, "0123456789.eE+-") != "" {
		return "?"
	}
	return s
}

// FormatFloat writes a number as people do: without an exponent if it is a whole number of up to 15
// digits.
func FormatFloat(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}
