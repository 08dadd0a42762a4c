// Package rowcache holds rows in memory: AIBox's bi-level cache (§4.2).
package rowcache
