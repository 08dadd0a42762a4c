package reader

import (
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// Timestamps and dates are integers in Parquet: so they are features, as ever,
// and what goes from Parquet to Parquet. Columns that are passed through into
// text are for people and databases, and there they are written as RFC 3339 says.

// findTime notes whether the column is a timestamp or a date, as new and as old
// writers say it.
func (l *parquetLeaf) findTime(element *format.SchemaElement) {
	switch t := element.LogicalType; {
	case t != nil && t.Date != nil:
		l.date = l.kind == parquet.Int32
		return
	case t != nil && t.Timestamp != nil && l.kind == parquet.Int64:
		l.utc = t.Timestamp.IsAdjustedToUTC
		switch unit := &t.Timestamp.Unit; {
		case unit.Millis != nil:
			l.tick = int64(time.Millisecond)
		case unit.Micros != nil:
			l.tick = int64(time.Microsecond)
		case unit.Nanos != nil:
			l.tick = 1
		}
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
	}
}

// appendTime appends a timestamp or a date; ok is false where the column is none.
func (l *parquetLeaf) appendTime(text []byte, v *parquet.Value) (_ []byte, ok bool) {
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
