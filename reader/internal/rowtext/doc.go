// Package rowtext cuts text into rows, and knows nothing of what rows mean:
//
//	a byte range of a file ---Lines--> lines ---Cells--> cells ---Cut--> values
//	a decompressed file --Chunks--> runs of lines --Lines--^
//
// Lines end with \n or \r\n, and the last one may end with the text. A line that is too long is
// found without being held in memory, by Lines as by Chunks. A cell ends at a delimiter; in
// quotes (RFC 4180) it may hold delimiters, but no line end, since a text could not be cut
// into ranges then. What is cut points into the text, and nothing is copied but quoted cells.
//
// Excerpt is what errors and reports show of a row or a cell.
package rowtext
