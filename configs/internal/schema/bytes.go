package schema

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size in bytes. In a job file it is a plain number or a number
// with a unit: KiB, MiB, GiB and TiB are powers of 1024, kB, MB, GB and TB
// powers of 1000, and a bare k, m, g or t is a power of 1024, as in dd and in
// Java's -Xmx. Upper and lower case are the same.
type Bytes int64

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
	tib = 1 << 40
)

var byteUnits = map[string]float64{
	"": 1, "b": 1,
	"k": kib, "m": mib, "g": gib, "t": tib,
	"kib": kib, "mib": mib, "gib": gib, "tib": tib,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
}

// ParseBytes reads a size such as 8GiB, 512MiB, 64k or 4096.
func ParseBytes(text string) (Bytes, error) {
	s := strings.TrimSpace(text)
	end := strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune("0123456789._+-", r) })
	if end < 0 {
		end = len(s)
	}
	unit, ok := byteUnits[strings.ToLower(strings.TrimSpace(s[end:]))]
	number := strings.ReplaceAll(s[:end], "_", "")
	if whole, err := strconv.ParseInt(number, 10, 64); err == nil && ok {
		if float64(whole)*unit >= math.MaxInt64 || float64(whole)*unit <= math.MinInt64 {
			return 0, fmt.Errorf("%q is more than 8 EiB", text)
		}
		return Bytes(whole * int64(unit)), nil
	}
	part, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || math.Abs(part*unit) >= math.MaxInt64 || part != 0 && math.Abs(part*unit) < 1 { // 0.5 would be 0, which may mean no limit
		return 0, fmt.Errorf("%q is not a size: write a number and a unit, such as 8GiB, 512MiB or 64k", text)
	}
	return Bytes(part * unit), nil
}

// String prints b in the largest binary unit that divides it.
func (b Bytes) String() string {
	for _, u := range []struct {
		size Bytes
		name string
	}{{tib, "TiB"}, {gib, "GiB"}, {mib, "MiB"}, {kib, "KiB"}} {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}
