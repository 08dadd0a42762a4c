package slots

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

const (
	pageHeaderBytes = 8
	pageFooterBytes = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// PageError reports a page that cannot be decoded.
type PageError struct {
	Page   uint32
	Reason string
}

func (e *PageError) Error() string {
	return fmt.Sprintf("slots: page %d of the index is damaged: %s", e.Page, e.Reason)
}

// Pages is the number of pages.
func (x *Index) Pages() uint32 { return pagesOf(x.n, x.pageShift) }

// PageSlots is the number of slots of every page except the last one.
func (x *Index) PageSlots() int { return 1 << x.pageShift }

func pagesOf(slots uint32, shift uint) uint32 {
	return uint32((uint64(slots) + 1<<shift - 1) >> shift)
}

// MaxPageBytes is the length of an encoded page of PageSlots slots.
func (x *Index) MaxPageBytes() int {
	return pageHeaderBytes + x.PageSlots()*(slotBytes+x.filter.bytes) + pageFooterBytes
}

// encodePage appends page to dst, in the format of the package documentation, as if there were only
// n slots.
func (x *Index) encodePage(page, n uint32, dst []byte) []byte {
	first := page << x.pageShift
	if first >= n {
		panic(fmt.Sprintf("slots: page %d of %d", page, pagesOf(n, x.pageShift)))
	}
	count := min(n-first, 1<<x.pageShift)
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, page)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(count))
	dst = append(dst, uint8(x.filter.bytes), uint8(x.filter.probes))
	c := x.chunk(first)
	at := first % chunkSlots
	for _, l := range c.locations[at : at+count] {
		dst = binary.LittleEndian.AppendUint64(dst, l)
	}
	for _, w := range c.filters[at*x.filter.words : (at+count)*x.filter.words] {
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// DecodePage sets the slots of page from the bytes that encodePage made, without marking the page
// dirty; Restore must have made exactly the slots that existed then. It converts filters that are
// larger or smaller than those of the index by a power of two; filters of any other shape become
// unknown. The error is a *PageError; the index is then unchanged.
func (x *Index) DecodePage(page uint32, src []byte) error {
	bad := func(format string, args ...any) error {
		return &PageError{Page: page, Reason: fmt.Sprintf(format, args...)}
	}
	if page >= x.Pages() {
		return bad("there are only %d pages", x.Pages())
	}
	first := page << x.pageShift
	count := min(x.n-first, 1<<x.pageShift)
	if len(src) < pageHeaderBytes+pageFooterBytes {
		return bad("%d bytes are too few", len(src))
	}
	body, sum := src[:len(src)-pageFooterBytes], binary.LittleEndian.Uint32(src[len(src)-pageFooterBytes:])
	if got := crc32.Checksum(body, castagnoli); got != sum {
		return bad("checksum %08x, should be %08x", got, sum)
	}
	if p := binary.LittleEndian.Uint32(body); p != page {
		return bad("it is page %d", p)
	}
	if n := uint32(binary.LittleEndian.Uint16(body[4:])); n != count {
		return bad("%d slots, should be %d", n, count)
	}
	filterBytes, probes := int(body[6]), int(body[7])
	if filterBytes > maxFilterBytes || filterBytes%8 != 0 || probes > maxProbes {
		return bad("filters of %d bytes with %d probes", filterBytes, probes)
	}
	body = body[pageHeaderBytes:]
	if want := int(count) * (slotBytes + filterBytes); len(body) != want {
		return bad("%d bytes of slots, should be %d", len(body), want)
	}
	// Filters that were written with more probes can be used, since the first probes are the same.
	x.fillPage(first, count, body, shrinksTo(filterBytes, x.filter.bytes) && probes >= x.filter.probes)
	return nil
}

// shrinksTo reports whether repeated shrinking by SmallerFilter converts one of the two sizes into
// the other, and neither is 0.
func shrinksTo(a, b int) bool {
	a, b = max(a, b), min(a, b)
	for a > b {
		a = SmallerFilter(a)
	}
	return a == b && b > 0
}

// fillPage sets count slots, starting at first; usable says whether the filters in src have this
// index's shape or can be converted to it.
func (x *Index) fillPage(first, count uint32, src []byte, usable bool) {
	c := x.chunk(first)
	at := first % chunkSlots
	for i := range c.locations[at : at+count] {
		c.locations[at+uint32(i)] = binary.LittleEndian.Uint64(src[8*i:])
	}
	src = src[8*count:]
	words := c.filters[at*x.filter.words : (at+count)*x.filter.words]
	if len(words) == 0 {
		return
	}
	if usable {
		stored := make([]uint64, len(src)/8)
		for i := range stored {
			stored[i] = binary.LittleEndian.Uint64(src[8*i:])
		}
		for len(stored) > len(words) {
			halve(stored[:len(stored)/2], stored)
			stored = stored[:len(stored)/2]
		}
		for len(stored) < len(words) {
			stored = double(stored)
		}
		copy(words, stored)
		return
	}
	for i := range words {
		words[i] = 0
		if c.locations[at+uint32(i)/x.filter.words] != 0 {
			words[i] = ^uint64(0)
		}
	}
}
