package emulated

import "fmt"

// HazardKind is what a program did wrong.
type HazardKind string

const (
	Race      HazardKind = "race"           // two accesses of the same bytes, one of which writes, are not ordered
	Unwritten HazardKind = "unwritten"      // bytes are read that nothing has written
	Touched   HazardKind = "touched"        // the host changed pinned memory that a pending operation uses
	Outside   HazardKind = "outside"        // a kernel wrote bytes that it did not declare as written
	LeftOut   HazardKind = "left out"       // a kernel did not write all bytes that it declared as written
	Threads   HazardKind = "two goroutines" // two goroutines were in the platform at a time
)

// Hazard is a fault of the program that uses the platform: on real devices its results would depend
// on timing or on what memory happens to hold.
type Hazard struct {
	Kind   HazardKind
	Where  string // the bytes
	First  string // what used them before, if anything did
	Second string // what has used them now
}

func (h *Hazard) Error() string {
	switch h.Kind {
	case Race:
		return fmt.Sprintf("emulated: race: nothing orders [%s] and [%s], which both use %s", h.First, h.Second, h.Where)
	case Unwritten:
		return fmt.Sprintf("emulated: [%s] reads %s, which nothing has written", h.Second, h.Where)
	case Touched:
		return fmt.Sprintf("emulated: the host changed %s after it enqueued [%s] and before that ran", h.Where, h.Second)
	case Outside:
		return fmt.Sprintf("emulated: [%s] wrote outside of what it declares as written: %s", h.Second, h.Where)
	case LeftOut:
		return fmt.Sprintf("emulated: [%s] did not write %s, which it declares as written", h.Second, h.Where)
	}
	return fmt.Sprintf("emulated: %s: [%s] and [%s]", h.Kind, h.First, h.Second)
}
