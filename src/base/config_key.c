/* SPDX-License-Identifier: Apache-2.0 */
/* The table of settings, and how their values are written. */
#include "config_key.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "error.h"
#include "rundir.h"
#include "trust.h"

static bool is_ip(const char *text)
{
	unsigned char buf[16];

	return inet_pton(AF_INET, text, buf) == 1 ||
	       inet_pton(AF_INET6, text, buf) == 1;
}

static bool is_ip_list(const char *text)
{
	char one[INET6_ADDRSTRLEN];
	unsigned count = 0;

	while (*text) {
		size_t n = strcspn(text, ",");

		if (n >= sizeof(one) || ++count > CONFIG_ADDRESSES_MAX)
			return false;
		memcpy(one, text, n);
		one[n] = 0;
		if (!is_ip(one))
			return false;
		text += n + (text[n] == ',');
	}
	return true;
}

static bool is_port(const char *text)
{
	if (strncmp(text, "raw:", 4) == 0)
		return text[4] && strlen(text + 4) < CONFIG_INTERFACE_MAX;
	if (strncmp(text, "switch:", 7) == 0)
		return text[7] && strlen(text + 7) < CONFIG_INTERFACE_MAX &&
		       !strchr(text, '/');
	return strcmp(text, "auto") == 0 || strcmp(text, "cable") == 0 ||
	       strcmp(text, "udp") == 0;
}

static bool is_auth(const char *text)
{
	return strcmp(text, "none") == 0 || strcmp(text, "psk") == 0;
}

static bool is_absolute(const char *text)
{
	return text[0] == '\0' || text[0] == '/';
}

/* A folder, or s3://BUCKET[/PREFIX...]. */
static bool is_vault(const char *text)
{
	size_t len = strlen(text);

	if (strncmp(text, "s3://", 5) != 0)
		return is_absolute(text) && len < 256;
	return len > 5 && len < 256 && text[5] != '/' && text[len - 1] != '/' &&
	       !strstr(text + 5, "//") &&
	       strspn(text + 5, "abcdefghijklmnopqrstuvwxyz"
				"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				"0123456789._-/") == len - 5;
}

/* http[s]://HOST[:PORT], without a path. */
static bool is_endpoint(const char *text)
{
	const char *host = strstr(text, "://");
	bool is_http = strncmp(text, "http://", 7) == 0 ||
		       strncmp(text, "https://", 8) == 0;

	if (!text[0])
		return true;
	return is_http && strlen(text) < 256 && host[3] &&
	       strspn(host + 3, "abcdefghijklmnopqrstuvwxyz"
				"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				"0123456789.-:[]") == strlen(host + 3);
}

static bool is_region(const char *text)
{
	return strlen(text) < 64 && strspn(text, "abcdefghijklmnopqrstuvwxyz"
						 "0123456789-") == strlen(text);
}

static bool is_zone(const char *text)
{
	return text[0] == '\0' || rundir_rack_is_valid(text);
}

/* A name, or addresses with commas between them. */
static bool is_control(const char *text)
{
	static const char *const schemes[] = {"http://", "https://", "unix:/"};
	size_t i;

	if (rundir_rack_is_valid(text))
		return true;
	for (;; text++) {
		size_t len = strcspn(text, ",");

		for (i = 0; i < ARRAY_LEN(schemes); i++)
			if (strncmp(text, schemes[i], strlen(schemes[i])) ==
				    0 &&
			    len > strlen(schemes[i]))
				break;
		if (i == ARRAY_LEN(schemes))
			return false;
		text += len;
		if (!*text)
			return true;
	}
}

static const struct config_key keys[] = {
	{"rack", "name", CONFIG_STRING, "local",
	 .help = "name of the rack; names the runtime directory",
	 .check = rundir_rack_is_valid,
	 .allowed = "1 to 32 of a-z, 0-9 and '-'"},
	{"rack", "user", CONFIG_STRING, "",
	 .help = "user whose processes serve the rack; trusted by all who use "
		 "it. None: one's own and root's",
	 .check = trust_name_is_valid, .allowed = "a user's name or number"},
	{"rack", "group", CONFIG_STRING, "",
	 .help = "group whose members may use the rack. None: nobody else",
	 .check = trust_name_is_valid, .allowed = "a group's name or number"},
	{"rack", "state_dir", CONFIG_STRING, "",
	 .help = "folder of what survives a reboot: tokens and tenants. None: "
		 "/var/lib/aquifer as root, else ~/.local/state/aquifer",
	 .check = is_absolute, .allowed = "an absolute path"},
	{"rack", "token_file", CONFIG_STRING, "",
	 .help = "file with the token of this machine's programs, which memory "
		 "nodes give the tenant default. None: made by the first node",
	 .check = is_absolute, .allowed = "an absolute path"},
	{"rack", "admin_token_file", CONFIG_STRING, "",
	 .help = "file with the token of the administrator. None: made by the "
		 "first node",
	 .check = is_absolute, .allowed = "an absolute path"},
	{"rack", "engine_token_file", CONFIG_STRING, "",
	 .help = "file with the token for engines. None: made by the first "
		 "engine",
	 .check = is_absolute, .allowed = "an absolute path"},
	{"rack", "node_token_file", CONFIG_STRING, "",
	 .help = "file with the token by which nodes join a controller. None: "
		 "made by the first of them",
	 .check = is_absolute, .allowed = "an absolute path"},
	{"rack", "control", CONFIG_STRING, "none",
	 .help = "the rack's controllers: the name of one on this machine, "
		 "which 'aquifer up' starts, or addresses with commas; none",
	 .check = is_control,
	 .allowed = "none, a name of 1 to 32 of a-z, 0-9 and '-', or "
		    "http://HOST:PORT, https://HOST:PORT, unix:/PATH"},
	{"rack", "ca", CONFIG_STRING, "",
	 .help = "certificates to trust when a controller has https, a PEM "
		 "file",
	 .check = is_absolute, .allowed = "an absolute path"},
	{"rack", "cert", CONFIG_STRING, "",
	 .help = "certificate to show a controller, or a node that it names, "
		 "which asks for one, a PEM file",
	 .check = is_absolute, .allowed = "an absolute path"},
	{"rack", "key", CONFIG_STRING, "",
	 .help = "private key of rack.cert, a PEM file", .check = is_absolute,
	 .allowed = "an absolute path"},
	{"rack", "vault", CONFIG_STRING, "",
	 .help = "where images of elastic memory go: a folder, which exists "
		 "and "
		 "which all memory nodes see under this name, or a bucket of "
		 "S3. None: what expires is dropped",
	 .check = is_vault,
	 .allowed = "an absolute path or s3://BUCKET[/PREFIX], below 256 "
		    "characters"},
	{"rack", "vault_endpoint", CONFIG_STRING, "",
	 .help = "where a node finds S3; default: that of Amazon in the region",
	 .check = is_endpoint, .allowed = "http[s]://HOST[:PORT]"},
	{"rack", "vault_region", CONFIG_STRING, "us-east-1",
	 .help = "region of S3, which signatures name", .check = is_region,
	 .allowed = "letters, digits and '-'"},
	{"rack", "vault_key_file", CONFIG_STRING, "",
	 .help = "at controllers: file with aws_access_key_id and "
		 "aws_secret_access_key for the vault",
	 .check = is_absolute, .allowed = "an absolute path"},
	{"rack", "zone", CONFIG_STRING, "",
	 .help = "what this machine's nodes may fail together with; copies go "
		 "to different ones",
	 .check = is_zone, .allowed = "1 to 32 of a-z, 0-9 and '-'"},
	{"nic", "mode", CONFIG_CHOICE, "auto",
	 .help = "which NIC to use; auto takes an RNIC where there is one",
	 .choices = "auto|soft|hw"},
	{"nic", "device", CONFIG_STRING, "",
	 .help = "RDMA device of applications with libaquifer; none: the "
		 "soft NIC, or with mode hw the first"},
	{"nic", "address", CONFIG_STRING, "127.0.0.1",
	 .help = "IP address of the soft NIC", .check = is_ip,
	 .allowed = "an IPv4 or IPv6 address"},
	{"nic", "addresses", CONFIG_STRING, "",
	 .help = "addresses of several soft NICs, separated by commas; "
		 "replaces nic.address",
	 .check = is_ip_list,
	 .allowed = "up to 8 IPv4 or IPv6 addresses, separated by commas"},
	{"nic", "port", CONFIG_STRING, "auto",
	 .help = "way between NICs; auto: cables on this host, UDP to others",
	 .check = is_port,
	 .allowed = "auto, cable, udp, raw: and the name of an interface, or "
		    "switch: and the name of a switch"},
	{"nic", "auth", CONFIG_STRING, "none",
	 .help = "psk: packets between NICs over a network carry a MAC",
	 .check = is_auth, .allowed = "none or psk"},
	{"nic", "loss_ppm", CONFIG_INT, "0",
	 .help = "UDP packets to drop on purpose, of a million; for tests",
	 .max = 1000000},
	{"nic", "vendor_part_id", CONFIG_INT, "4119",
	 .help = "part number the soft NIC reports (4119: as a ConnectX-5)",
	 .max = UINT32_MAX},
	{"nic", "engine_yields", CONFIG_INT, "400",
	 .help = "idle turns of 0.25 us before the NIC thread sleeps",
	 .max = 1000000},
	{"nic", "cm_keepalive_ms", CONFIG_INT, "10000",
	 .help = "silence until an idle rdma_cm peer counts as dead; 0: never",
	 .max = 3600000},
	{"nic", "mtu", CONFIG_INT, "4096",
	 .help = "largest path MTU of the soft NIC, in bytes", .min = 256,
	 .max = 4096, .is_pow2 = true},
	{"nic", "watch_unmap", CONFIG_BOOL, "yes",
	 .help = "learn from the kernel when registered memory is unmapped"},
	{"walk", "jit", CONFIG_CHOICE, "auto",
	 .help = "whether memory nodes translate walks to machine code",
	 .choices = "auto|off"},
	{"walk", "iterations", CONFIG_INT, "256",
	 .help = "most nodes that one request of a walk visits on a memory "
		 "node",
	 .min = 1, .max = 65536},
	{"walk", "longest", CONFIG_INT, "1024",
	 .help = "cost of the longest path through a walk that a memory node "
		 "takes",
	 .min = 1, .max = 65536},
	{"walk", "programs", CONFIG_INT, "1024",
	 .help = "walks that a memory node keeps, of all tenants together",
	 .min = 8, .max = 4096},
};

unsigned config_key_count(void)
{
	return ARRAY_LEN(keys);
}

const struct config_key *config_key_at(unsigned index)
{
	ASSERT(index < ARRAY_LEN(keys));
	return &keys[index];
}

/* The known sections, or with `section` its known keys, as one text. */
static void list_known(const char *section, char *out, size_t size_bytes)
{
	size_t used = 0;
	unsigned i;

	out[0] = 0;
	for (i = 0; i < ARRAY_LEN(keys); i++) {
		const char *word = section ? keys[i].key : keys[i].section;
		bool wanted =
			section ? strcmp(keys[i].section, section) == 0
				: i == 0 || strcmp(keys[i - 1].section, word);

		if (wanted && used < size_bytes)
			used += (size_t)snprintf(out + used, size_bytes - used,
						 "%s%s", used ? ", " : "",
						 word);
	}
}

int config_key_find(const char *section, const char *key)
{
	bool has_section = false;
	char known[256];
	unsigned i;

	for (i = 0; i < ARRAY_LEN(keys); i++) {
		if (strcmp(keys[i].section, section))
			continue;
		has_section = true;
		if (strcmp(keys[i].key, key) == 0)
			return (int)i;
	}
	list_known(has_section ? section : NULL, known, sizeof(known));
	if (has_section)
		return error_set(-ENOENT,
				 "unknown key '%.40s' in section [%s]; known: "
				 "%s",
				 key, section, known);
	return error_set(-ENOENT, "unknown section [%.40s]; known: %s", section,
			 known);
}

enum {
	FRACTION_DIGITS = 6, /* times 2^40 fits into 64 bits */
};

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {{"", 1},	    {"K", 1ull << 10},
					 {"M", 1ull << 20}, {"G", 1ull << 30},
					 {"T", 1ull << 40}, {NULL, 0}};
static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

static const struct unit *units_of(const struct config_key *key)
{
	return key->kind == CONFIG_SIZE ? size_units : no_units;
}

/* The digits of a number in this base; strtoull would take blanks and signs as
 * well. */
static bool scan_digits(const char *text, int base, uint64_t *number,
			const char **rest)
{
	char *end;

	if (base == 16 ? !isxdigit((unsigned char)*text)
		       : !isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*number = strtoull(text, &end, base);
	*rest = end;
	return errno == 0;
}

static bool scan_number(const char *text, uint64_t *number)
{
	bool is_hex = text[0] == '0' && text[1] == 'x';

	return scan_digits(is_hex ? text + 2 : text, is_hex ? 16 : 10, number,
			   &text) &&
	       !*text;
}

/* K, k, KB and KiB are the same. */
static const struct unit *scan_unit(const char *text)
{
	const struct unit *u = size_units;

	for (; u->name; u++) {
		size_t len = strlen(u->name);
		const char *rest = text + len;

		if (strncasecmp(text, u->name, len) == 0 &&
		    (!*rest || (len && (strcasecmp(rest, "B") == 0 ||
					strcasecmp(rest, "iB") == 0))))
			return u;
	}
	return NULL;
}

/* As people write them: 4096, 64K, 1.5GiB. Parts of a byte are left out. */
static bool scan_size(const char *text, uint64_t *bytes)
{
	uint64_t whole, part = 0, ten = 1;
	const struct unit *u;

	if (!scan_digits(text, 10, &whole, &text))
		return false;
	if (*text == '.') {
		const char *from = ++text;

		if (!scan_digits(text, 10, &part, &text) ||
		    text - from > FRACTION_DIGITS)
			return false;
		while (from++ < text)
			ten *= 10;
	}
	u = scan_unit(text);
	return u && !(ten > 1 && u->factor == 1) &&
	       !__builtin_mul_overflow(whole, u->factor, &whole) &&
	       !__builtin_add_overflow(whole, part * u->factor / ten, bytes);
}

/* A value as one would write it: 4K. */
static void show(const struct config_key *key, uint64_t v, char out[32])
{
	const struct unit *u = units_of(key), *best = u;

	for (; u->name; u++)
		if (v && v % u->factor == 0)
			best = u;
	snprintf(out, 32, "%" PRIu64 "%s", v / best->factor, best->name);
}

static int parse_number(const struct config_key *key, const char *text,
			uint64_t *number)
{
	char low[32], high[32];
	uint64_t v;

	show(key, key->min, low);
	show(key, key->max, high);
	if ((key->kind == CONFIG_SIZE ? scan_size(text, &v)
				      : scan_number(text, &v)) &&
	    v >= key->min && v <= key->max &&
	    !(key->is_pow2 && (v & (v - 1)))) {
		*number = v;
		return 0;
	}
	return error_set(
		-EINVAL, "value '%.40s' is not allowed; %s%s from %s to %s",
		text, key->is_pow2 ? "a power of two, " : "",
		key->kind == CONFIG_SIZE ? "bytes (64K, 1.5G; powers of 1024)"
					 : "a whole number",
		low, high);
}

static int parse_choice(const char *choices, const char *text, uint64_t *number)
{
	const char *c = choices;
	size_t len = strlen(text);
	uint64_t index;

	for (index = 0; *c; index++) {
		size_t n = strcspn(c, "|");

		if (n == len && memcmp(c, text, n) == 0) {
			*number = index;
			return 0;
		}
		c += n + (c[n] == '|');
	}
	return error_set(-EINVAL, "value '%.40s' is not allowed; one of %s",
			 text, choices);
}

int config_key_parse(const struct config_key *key, const char *text,
		     uint64_t *number)
{
	int err;

	switch (key->kind) {
	case CONFIG_STRING:
		if (key->check && !key->check(text))
			return error_set(-EINVAL,
					 "value '%.64s' is not allowed; %s",
					 text, key->allowed);
		*number = 0;
		return 0;
	case CONFIG_CHOICE:
		return parse_choice(key->choices, text, number);
	case CONFIG_BOOL:
		/* Even places mean no. */
		err = parse_choice("no|yes|false|true|off|on|0|1", text,
				   number);
		if (err == 0)
			*number &= 1;
		return err;
	case CONFIG_INT:
	case CONFIG_SIZE:
		return parse_number(key, text, number);
	}
	ASSERT(false);
	return -EINVAL;
}
