package parquetcolumn

import (
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// Timestamps and dates are integers in Parquet. As features, and when they are
// written to Parquet again, they stay integers. Pass-through columns that are written
// as text are for people and databases, so there they have the form of RFC 3339.

// Unit is what the values of a date, a time or a timestamp count; "" for other columns.
func (l *Leaf) Unit() string {
	switch {
	case l.date:
		return "days"
	case l.tick == int64(time.Millisecond) || l.clock == int64(time.Millisecond):
		return "milliseconds"
	case l.tick == int64(time.Microsecond) || l.clock == int64(time.Microsecond):
		return "microseconds"
	case l.tick == 1 || l.clock == 1:
		return "nanoseconds"
	}
	return ""
}

// nanoseconds is how many of them a unit has.
func nanoseconds(unit *format.TimeUnit) int64 {
	switch {
	case unit.Millis != nil:
		return int64(time.Millisecond)
	case unit.Micros != nil:
		return int64(time.Microsecond)
	case unit.Nanos != nil:
		return 1
	}
	return 0
}

// findTime notes whether the column is a timestamp, a date or a time of day, which new and
// old writers declare in different ways.
func (l *Leaf) findTime(element *format.SchemaElement) {
	switch t := element.LogicalType; {
	case t != nil && t.Date != nil:
		l.date = l.kind == parquet.Int32
		return
	case t != nil && t.Time != nil:
		l.clock = nanoseconds(&t.Time.Unit)
		return
	case t != nil && t.Timestamp != nil && l.kind == parquet.Int64:
		l.tick, l.utc = nanoseconds(&t.Timestamp.Unit), t.Timestamp.IsAdjustedToUTC
		return
	}
	if element.ConvertedType == nil {
		return
	}
	switch *element.ConvertedType {
	case deprecated.Date:
		l.date = l.kind == parquet.Int32
	case deprecated.TimestampMillis:
		l.tick, l.utc = int64(time.Millisecond), true
	case deprecated.TimestampMicros:
		l.tick, l.utc = int64(time.Microsecond), true
	case deprecated.TimeMillis:
		l.clock = int64(time.Millisecond)
	case deprecated.TimeMicros:
		l.clock = int64(time.Microsecond)
	}
}

// appendTime appends a timestamp or a date as text; ok is false where the column is
// neither.
func (l *Leaf) appendTime(text []byte, v *parquet.Value) (_ []byte, ok bool) {
	switch {
	case l.date:
		return time.Unix(int64(v.Int32())*24*60*60, 0).UTC().AppendFormat(text, time.DateOnly), true
	case l.tick == 0:
		return text, false
	}
	perSecond := int64(time.Second) / l.tick
	seconds, rest := v.Int64()/perSecond, v.Int64()%perSecond
	layout := "2006-01-02T15:04:05.999999999"
	if l.utc {
		layout += "Z"
	}
	return time.Unix(seconds, rest*l.tick).UTC().AppendFormat(text, layout), true
}
