package schema

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// interval is a range of numbers.
type interval struct {
	min, max         float64
	openMin, openMax bool
	given            bool
}

func parseInterval(s string) interval {
	if s == "" {
		return interval{}
	}
	low, high, ok := strings.Cut(s[1:len(s)-1], ",")
	iv := interval{openMin: s[0] == '(', openMax: s[len(s)-1] == ')', given: true}
	var err1, err2 error
	iv.min, err1 = strconv.ParseFloat(low, 64)
	iv.max, err2 = strconv.ParseFloat(high, 64)
	if !ok || err1 != nil || err2 != nil {
		panic("configs: bad range " + s)
	}
	return iv
}

func (iv interval) contains(x float64) bool {
	if !iv.given {
		return true
	}
	return (x > iv.min || x == iv.min && !iv.openMin) && (x < iv.max || x == iv.max && !iv.openMax)
}

// format says in words what is in the interval; number prints its ends. It
// returns "" for an interval of all finite numbers.
func (iv interval) format(number func(float64) string) string {
	if !iv.given || math.IsInf(iv.min, -1) {
		return ""
	}
	low, high := number(iv.min), ""
	if !math.IsInf(iv.max, 1) {
		high = number(iv.max)
	}
	switch {
	case math.IsInf(iv.max, 1) && iv.openMin:
		return "more than " + low
	case math.IsInf(iv.max, 1):
		return low + " or more"
	case !iv.openMin && !iv.openMax:
		return "from " + low + " to " + high
	}
	word := func(open bool, yes, no string) string {
		if open {
			return yes
		}
		return no
	}
	return fmt.Sprintf("%s %s, %s %s", word(iv.openMin, "more than", "at least"), low, word(iv.openMax, "less than", "at most"), high)
}
