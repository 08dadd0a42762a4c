package login

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// An included file leaves the section and the realm of the file that includes it alone.
func TestKrb5ConfIncludeInSection(t *testing.T) {
	dir := t.TempDir()
	included, main := filepath.Join(dir, "d", "included"), filepath.Join(dir, "krb5.conf")
	text := "[libdefaults]\n include " + included + "\n default_realm = A.TEST\n" +
		" includedir " + filepath.Dir(included) + "\n clockskew = 7\n" +
		"[realms]\n A.TEST = {\n  include " + included + "\n  kdc = a.test:88\n }\n B.TEST = {\n  kdc = b.test:88\n }\n"
	err := errors.Join(os.Mkdir(filepath.Dir(included), 0o755), os.WriteFile(main, []byte(text), 0o644),
		os.WriteFile(included, []byte("outside = of any section\n[realms]\n C.TEST = {\n  kdc = c.test:88\n"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	conf, err := loadConf(main)
	if err != nil {
		t.Fatal(err)
	}
	if d := conf.LibDefaults; d.DefaultRealm != "A.TEST" || d.Clockskew.Seconds() != 7 {
		t.Errorf("default realm %q, clock skew %v", d.DefaultRealm, d.Clockskew)
	}
	for realm, kdc := range map[string]string{"A.TEST": "a.test:88", "B.TEST": "b.test:88", "C.TEST": "c.test:88"} {
		if _, kdcs, err := conf.GetKDCs(realm, true); err != nil || kdcs[1] != kdc {
			t.Errorf("KDCs of %s: %v, %v", realm, kdcs, err)
		}
	}
}

func TestKrb5ConfIncludes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	write("d/realm-a.conf", "[realms]\n A.TEST = {\n  kdc = a.test:88\n }\n[domain_realm]\n .a.test = A.TEST\n")
	write("d/realm-b", "[realms]\n B.TEST = {\n  kdc = b.test:88\n }\n C.TEST = {\n  auth_to_local = RULE:[1:$1]\n }\n[libdefaults]\n permitted_enctypes = aes128-cts, aes256-sha2 rc4\n")
	write("d/ignored.rpmsave", "[libdefaults]\n default_realm = OLD.TEST\n")
	main := write("krb5.conf", "# site\nincludedir\t"+dir+"/d\n\n[libdefaults]\n default_realm = A.TEST\n clockskew = 7\n"+
		"[logging]\n default = FILE:/dev/null\n[realms]\n C.TEST = {\n  kdc = c.test\n  v4_instance_convert = {\n  }\n }\n")
	second := write("second", "[libdefaults]\n udp_preference_limit = 1\n default_realm = B.TEST\n default_ccache_name = KEYRING:persistent:%{uid}\n"+
		"[realms]\n C.TEST = {\n  admin_server = c.test\n }\n")

	conf, err := loadConf(main + ":/nonexistent:" + second)
	if err != nil {
		t.Fatal(err)
	}
	if conf.LibDefaults.DefaultRealm != "A.TEST" || conf.LibDefaults.UDPPreferenceLimit != 1 || conf.LibDefaults.Clockskew.Seconds() != 7 {
		t.Errorf("libdefaults %+v", conf.LibDefaults)
	}
	if types := conf.LibDefaults.DefaultTktEnctypeIDs; !slices.Equal(types, []int32{17, 20, 23}) {
		t.Errorf("types of keys %d", types)
	}
	if !conf.LibDefaults.DNSLookupKDC {
		t.Error("the KDC is not looked up in DNS")
	}
	if conf.cache != "KEYRING:persistent:%{uid}" {
		t.Errorf("ticket cache %q", conf.cache)
	}
	if n, kdcs, err := conf.GetKDCs("C.TEST", true); n != 1 || kdcs[1] != "c.test:88" {
		t.Errorf("KDCs of C.TEST: %v, %v", kdcs, err)
	}
	var realms []string
	for _, r := range conf.Realms {
		realms = append(realms, r.Realm)
	}
	if len(realms) != 3 {
		t.Errorf("realms %q", realms)
	}
	if got := conf.ResolveRealm("nn.a.test"); got != "A.TEST" {
		t.Errorf("nn.a.test is in %q", got)
	}

	loop := write("loop", "include\t"+dir+"/loop\n")
	for _, bad := range []string{loop, filepath.Join(dir, "none"), write("bad", "include "+dir+"/none\n")} {
		if _, err := loadConf(bad); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}
