package hdfstest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Realm of the test KDC.
const Realm = "AIBOX.TEST"

// KDC is a Kerberos key distribution centre, a process of this user with its
// files in a directory of its own.
type KDC struct {
	dir  string
	env  []string
	proc *process

	mu sync.Mutex // one kadmin.local at a time: it locks the database
}

func startKDC(dir string, port int) (*KDC, error) {
	k := &KDC{dir: dir}
	k.env = []string{"KRB5_CONFIG=" + k.Krb5Conf(), "KRB5_KDC_PROFILE=" + filepath.Join(dir, "kdc.conf")}

	// clockskew is short, because with the default of 300 s a ticket still works five
	// minutes after it has expired, and tests could not wait for that.
	// udp_preference_limit makes clients always use TCP.
	krb5Conf := fmt.Sprintf(`[libdefaults]
  default_realm = %[1]s
  dns_lookup_kdc = false
  dns_lookup_realm = false
  rdns = false
  clockskew = 3
  udp_preference_limit = 1
  permitted_enctypes = aes256-cts-hmac-sha1-96 aes128-cts-hmac-sha1-96
[realms]
  %[1]s = {
    kdc = 127.0.0.1:%[2]d
  }
[domain_realm]
  localhost = %[1]s
`, Realm, port)
	kdcConf := fmt.Sprintf(`[kdcdefaults]
  kdc_listen = 127.0.0.1:%[3]d
  kdc_tcp_listen = 127.0.0.1:%[3]d
[realms]
  %[1]s = {
    database_name = %[2]s/principal
    key_stash_file = %[2]s/stash
    acl_file = %[2]s/kadm5.acl
    max_life = 1h
    max_renewable_life = 1h
    supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
  }
`, Realm, dir, port)
	for name, text := range map[string]string{"krb5.conf": krb5Conf, "kdc.conf": kdcConf, "kadm5.acl": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	if err := k.run("kdb5_util", "create", "-s", "-r", Realm, "-P", "test"); err != nil {
		return nil, err
	}
	pidFile := filepath.Join(dir, "pid")
	krb5kdc, err := tool("krb5kdc")
	if err != nil {
		return nil, err
	}
	if k.proc, err = startProcess(dir, "krb5kdc", k.env, krb5kdc, "-n", "-P", pidFile); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(commandTimeout); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(pidFile); err == nil { // it is written when the KDC listens
			return k, nil
		}
		select {
		case <-k.proc.done:
			return nil, fmt.Errorf("krb5kdc has ended:\n%s", k.proc.log())
		default:
		}
		if time.Now().After(deadline) {
			k.proc.kill()
			return nil, fmt.Errorf("krb5kdc does not listen:\n%s", k.proc.log())
		}
	}
}

func (k *KDC) run(program string, args ...string) error {
	path, err := tool(program)
	if err != nil {
		return err
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), k.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", program, args, err, out)
	}
	return nil
}

// Krb5Conf returns the path of the krb5.conf for clients of this KDC.
func (k *KDC) Krb5Conf() string { return filepath.Join(k.dir, "krb5.conf") }

// Keytab makes a principal (user or user/host, without realm), whose tickets
// live for maxLife, and returns a key table with its key. A principal that
// exists gets a new key: older key tables of it become wrong.
func (k *KDC) Keytab(t testing.TB, principal string, maxLife time.Duration) string {
	t.Helper()
	path, err := k.keytab(principal, maxLife)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func (k *KDC) keytab(principal string, maxLife time.Duration) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f, err := os.CreateTemp(k.dir, "*.keytab")
	if err != nil {
		return "", err
	}
	path := f.Name()
	if err := f.Close(); err != nil {
		return "", err
	}
	if err := os.Remove(path); err != nil { // ktadd does not accept an empty file
		return "", err
	}
	life := fmt.Sprintf("%d seconds", int(maxLife.Seconds()))
	// addprinc reports an existing principal only in its output, not as an error.
	if err := k.run("kadmin.local", "-q", fmt.Sprintf(`addprinc -randkey -maxlife "%[1]s" -maxrenewlife "%[1]s" %[2]s`, life, principal)); err != nil {
		return "", err
	}
	if err := k.run("kadmin.local", "-q", fmt.Sprintf("ktadd -k %s %s", path, principal)); err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("kadmin.local wrote no key table for %s: %w", principal, err)
	}
	return path, nil
}

// Kinit logs in with a key table and leaves the tickets in cache.
func (k *KDC) Kinit(t testing.TB, principal, keytab, cache string, life time.Duration) {
	t.Helper()
	if err := k.run("kinit", "-k", "-t", keytab, "-c", "FILE:"+cache,
		"-l", fmt.Sprintf("%ds", int(life.Seconds())), principal); err != nil {
		t.Fatal(err)
	}
}
