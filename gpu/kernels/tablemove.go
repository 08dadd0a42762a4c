package kernels

import (
	"math"

	"aibox/gpu"
)

// The rows that these kernels move consist of arbitrary 32-bit words, such as rows of the sparse
// table or, as two words each, their keys. There may be more words than a kernel can index.

var (
	kernelTakeRows = declare("take_rows", "wrr ii")
	kernelPutRows  = declare("put_rows", "urr ii")
)

// TakeRows copies n rows of a table to a contiguous region: to[i] = rows[index[i]]. index has int32
// elements, and a row has the given number of words.
func (k *Set) TakeRows(s gpu.Stream, to, rows, index gpu.Region, words, n int) error {
	to, index, err := moved("TakeRows", to, rows, index, words, n)
	if err != nil || n == 0 {
		return err
	}
	k.with().add(gpu.Write(to), gpu.Read(rows), gpu.Read(index)).ints(n, words)
	return k.enqueue(s, kernelTakeRows, rowsOfWords(words, n, blockThreads))
}

// PutRows is the inverse: rows[index[i]] = from[i]. The elements of index must be distinct. Other
// rows do not change, but because only the device knows the index, the whole table counts as read
// and written.
func (k *Set) PutRows(s gpu.Stream, rows, from, index gpu.Region, words, n int) error {
	from, index, err := moved("PutRows", from, rows, index, words, n)
	if err != nil || n == 0 {
		return err
	}
	k.with().add(gpu.Update(rows), gpu.Read(from), gpu.Read(index)).ints(n, words)
	return k.enqueue(s, kernelPutRows, rowsOfWords(words, n, blockThreads))
}

// moved checks the operands of method what, and returns those parts of the contiguous region and of
// the index that belong to n rows.
func moved(what string, contiguous, rows, index gpu.Region, words, n int) (gpu.Region, gpu.Region, error) {
	if words <= 0 || words > math.MaxInt32 || n < 0 {
		return gpu.Region{}, gpu.Region{}, gpu.Invalid("%s: %d rows of %d words", what, n, words)
	}
	if n == 0 {
		return gpu.Region{}, gpu.Region{}, nil
	}
	for _, r := range []struct {
		name        string
		region      gpu.Region
		item, items int // bytes of each, and how many there must be
	}{{"the contiguous region", contiguous, 4 * words, n}, {"the table", rows, 4 * words, 1}, {"the index", index, 4, n}} {
		if r.region.Rows != 1 || r.region.Width/r.item < r.items {
			return gpu.Region{}, gpu.Region{}, gpu.Invalid("%s: %s, %v, does not hold %d times %d bytes one after the other",
				what, r.name, r.region, r.items, r.item)
		}
	}
	return gpu.Part(contiguous.Memory, contiguous.Offset, 4*words*n), gpu.Part(index.Memory, index.Offset, 4*n), nil
}

// rowsOfWords returns the geometry of kernels whose blocks have a thread for each word of some
// rows. If a row has more words than a block has threads, each thread handles two words of it, or
// three, and so on. A block has at most the given number of rows (most).
func rowsOfWords(words, n, most int) gpu.Geometry {
	each := (words + blockThreads - 1) / blockThreads // words for a thread
	x := (words + each - 1) / each
	y := min(blockThreads/x, n, most)
	return gpu.Geometry{Grid: gpu.Dim{X: (n + y - 1) / y}, Block: gpu.Dim{X: x, Y: y}}
}
