package kernels

import (
	"encoding/binary"
	"math"

	"aibox/gpu"
	"aibox/internal/kernel"
)

var (
	kernelRowSums    = declare("table_sums", "ru rrrrrr ri rr iiiiiiiiii")
	kernelUpdateRows = declare("table_update", "ruur rrrrrr ri rr iiiiiiiiiii")
)

// RowUpdate is the update of rows in a step.
type RowUpdate struct {
	First, Rest kernel.Formula // of the first value if it has an optimizer of its own (Split), and of the others
	Split       bool
	Groups      gpu.Region // int32 (Fields): the group of each field, whose rows have taken as many steps; none: all are of group 0
	Constants   gpu.Region // for each group the constants of two updates, of the first value and of the others: AppendUpdate
	Step        gpu.Region // RowStepBytes: see AppendRowStep
	Keys        gpu.Region // uint64, of all rows of the table; none if values are float32
}

// RowStepBytes is what AppendRowStep appends.
const RowStepBytes = 32

// AppendRowStep appends the inputs of a row update besides the constants: rounding is the
// half.Rounding of the step, clock the new clock of the rows, and factors the factors of the values
// before the update, if rows decay.
func AppendRowStep(b []byte, rounding uint64, clock float32, factors [4]float32) []byte {
	b = binary.LittleEndian.AppendUint64(b, rounding)
	for _, f := range factors {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(clock))
	return binary.LittleEndian.AppendUint32(b, 0)
}

// state is how many words of state the rows of t have with this update.
func (u *RowUpdate) state(t *Table) int {
	n, values := flagOf(t.Decays), t.Values
	if u.Split {
		n += u.First.Slots()
		values--
	}
	if u.Rest == kernel.FormulaRowwiseAdagrad {
		return n + 1
	}
	return n + u.Rest.Slots()*values
}

// has tells whether some values are updated by a formula.
func (u *RowUpdate) has(f kernel.Formula) bool { return u.Rest == f || u.Split && u.First == f }

// NoRow is the value of UpdateRows's word overflowed if all values are finite.
const NoRow = math.MaxUint32

// UpdateRows updates the admitted rows of the mini-batch with their gradients, unless the flag is
// set. values are those that Gather wrote, decay included; they do not change. 16-bit values are
// rounded with random bits that depend on the step, the row's key and the position. overflowed is a
// word that must be NoRow; it becomes the number in the mini-batch of the first row whose values
// are no longer finite. The group of a row is that of the last of its bags.
func (k *Set) UpdateRows(s gpu.Stream, flag, overflowed gpu.Region, t *Table, b *TableBatch, u *RowUpdate, admitted, values, grads gpu.Region) error {
	if b.Rows == 0 {
		return nil
	}
	if n := u.state(t); n != t.State {
		return gpu.Invalid("an update of rows with %d words of state: the table has %d", n, t.State)
	}
	if u.has(kernel.FormulaMomentum) {
		return gpu.Invalid("an update of rows by momentum, which dense parameters alone have")
	}
	if t.Format != Float32 && u.Keys.Memory == nil {
		return gpu.Invalid("values of 16 bits, and no keys for their rounding")
	}
	keys := u.Keys
	if t.Format == Float32 {
		keys = none(t.Rows)
	}
	arguments := func() {
		k.add(gpu.Read(b.Index), gpu.Read(admitted), gpu.Read(values), gpu.Read(grads), gpu.Read(b.Starts), gpu.Read(b.Bags))
		k.perhapsRegion(u.Groups, b.Starts).add(gpu.Read(u.Constants), gpu.Read(u.Step))
		k.ints(b.Rows, b.Fields, t.Words(), t.Values, int(t.Format), t.State, flagOf(t.Decays), flagOf(u.Split), int(u.First), int(u.Rest))
	}
	if u.has(kernel.FormulaRowwiseAdagrad) {
		// The sums of whole rows come first, since a thread of the update has one word of values.
		k.with().add(gpu.Read(flag), gpu.Update(t.Rows))
		arguments()
		if err := k.launch(s, kernelRowSums, rowThreads(b.Rows)); err != nil {
			return err
		}
	}
	k.with().add(gpu.Read(flag), gpu.Update(t.Rows), gpu.Update(overflowed), gpu.Read(keys))
	arguments()
	each := t.atOnce(values, grads)
	return k.ints(each).launch(s, kernelUpdateRows, elements(b.Rows, t.valueWords()/each))
}

func flagOf(b bool) int {
	if b {
		return 1
	}
	return 0
}
