package convert

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"aibox/reader/number"
)

// memoryBudget is the number of bytes that may still be held in memory.
type memoryBudget struct{ left int64 }

func (m *memoryBudget) take(bytes int64) error {
	if m.left -= bytes; m.left < 0 {
		return optionsErrorf("more rows than fit in memory; raise --memory, or convert less at a time")
	}
	return nil
}

// rowStore holds rows of text in memory, without an object per row.
type rowStore struct {
	columns int
	memory  *memoryBudget
	text    []byte
	ends    []int64 // columns per row, into text
}

func newRowStore(columns int, memory *memoryBudget) *rowStore {
	return &rowStore{columns: columns, memory: memory}
}

func (s *rowStore) len() int {
	if s.columns == 0 {
		return 0
	}
	return len(s.ends) / s.columns
}

// add copies a row in. It fails where the memory budget or 32-bit row numbers
// run out.
func (s *rowStore) add(cells [][]byte) error {
	if s.len() == math.MaxInt32 {
		return fmt.Errorf("more than %d rows", math.MaxInt32)
	}
	size := 8 * int64(s.columns)
	for _, cell := range cells {
		size += int64(len(cell))
	}
	// Twice the size, because growing slices have up to twice the capacity that they need.
	if err := s.memory.take(2 * size); err != nil {
		return err
	}
	for _, cell := range cells {
		s.text = append(s.text, cell...)
		s.ends = append(s.ends, int64(len(s.text)))
	}
	return nil
}

// cell returns a cell; it is valid as long as the store.
func (s *rowStore) cell(row int32, column int) []byte {
	at := int(row)*s.columns + column
	start := int64(0)
	if at > 0 {
		start = s.ends[at-1]
	}
	return s.text[start:s.ends[at]]
}

// row puts the row's cells into cells.
func (s *rowStore) row(row int32, cells [][]byte) {
	for i := range cells {
		cells[i] = s.cell(row, i)
	}
}

// sort returns the rows' numbers in the order of a column.
func (s *rowStore) sort(column int, descending bool) []int32 {
	order := make([]int32, s.len())
	numbers := make([]float64, len(order))
	numeric, whole := true, true
	for i := range order {
		order[i] = int32(i)
		cell := number.Trim(s.cell(int32(i), column))
		x, ok := number.Float64(cell)
		if len(cell) == 0 {
			x, ok = math.Inf(-1), true
		} else if whole {
			_, whole = number.Int64(cell)
		}
		numbers[i] = x
		numeric = numeric && ok && !math.IsNaN(x)
	}
	compare := func(a, b int32) int { return bytes.Compare(s.cell(a, column), s.cell(b, column)) }
	if numeric {
		compare = func(a, b int32) int {
			if numbers[a] == numbers[b] && whole { // those from 2^53 on are rounded
				return cmp.Compare(s.integer(a, column), s.integer(b, column))
			}
			return cmp.Compare(numbers[a], numbers[b])
		}
	}
	if descending {
		ascending := compare
		compare = func(a, b int32) int { return ascending(b, a) }
	}
	slices.SortStableFunc(order, compare)
	return order
}

// integer is the value of a cell that is one; 0: it is empty.
func (s *rowStore) integer(row int32, column int) int64 {
	x, _ := number.Int64(number.Trim(s.cell(row, column)))
	return x
}
