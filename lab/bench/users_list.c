/* SPDX-License-Identifier: Apache-2.0 */
/* Ten programs of Debian with work whose heap is some ten MiB and more, and
 * whose output is the same each time. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/rng.h"
#include "users.h"

enum {
	LINES = 250000,
	OBJECTS = 120000,
	QUICK_PART = 20, /* of the inputs, where nothing is to be proven */
};

const struct users_program users_programs[USERS_PROGRAMS] = {
	{"perl", "exec perl -ne '($k, $v) = split; $h{$k} = $v; END {"
		 " $s += $_ & 4095 for values %h; print \"$s\\n\" }' lines"},
	{"clang++", "exec clang++ -O1 -S -o - map.cc"},
	{"python3", "exec python3 -c '\n"
		    "import hashlib\n"
		    "d = dict(line.split()[:2] for line in open(\"lines\"))\n"
		    "h = hashlib.sha256()\n"
		    "for k in sorted(d):\n"
		    "    h.update(d[k].encode())\n"
		    "print(h.hexdigest())'"},
	{"sqlite3", "exec sqlite3 -batch :memory: <orders.sql"},
	{"sort", "exec sort -S 256M --parallel=1 lines"},
	{"gawk", "exec gawk '{ a[$1] = $2 } END { for (k in a) s += a[k];"
		 " print s }' lines"},
	{"xz", "exec xz -4 -T1 -c lines"},
	{"jq", "exec jq -c 'sort_by(.k) | map(.v) | add' doc.json"},
	{"ruby", "exec ruby -rdigest -e 'h = {}\n"
		 "File.foreach(\"lines\") { |l| k, v = l.split; h[k] = v }\n"
		 "d = Digest::SHA256.new\n"
		 "h.keys.sort.each { |k| d << h[k] }\n"
		 "puts d.hexdigest'"},
	{"node",
	 "exec node -e 'const m = new Map();\n"
	 "for (const l of require(\"fs\").readFileSync(\"lines\", \"latin1\")"
	 ".split(\"\\n\")) { const [k, v] = l.split(\" \"); m.set(k, v); }\n"
	 "const h = require(\"crypto\").createHash(\"sha256\");\n"
	 "for (const k of [...m.keys()].sort()) h.update(m.get(k) ?? \"\");\n"
	 "console.log(h.digest(\"hex\"));'"},
};

static void write_lines(FILE *f, struct rng *r, unsigned part)
{
	for (unsigned i = 0; i < LINES / part; i++)
		fprintf(f, "%016" PRIx64 " %u word%u\n", rng_u64(r), i,
			i % 977);
}

static void write_objects(FILE *f, struct rng *r, unsigned part)
{
	fputc('[', f);
	for (unsigned i = 0; i < OBJECTS / part; i++)
		fprintf(f, "%s{\"k\":%" PRIu64 ",\"v\":%u}", i ? "," : "",
			rng_u64(r) >> 14, i);
	fputs("]\n", f);
}

static void write_source(FILE *f, struct rng *r, unsigned part)
{
	(void)r;
	(void)part;
	fputs("#include <map>\n#include <string>\n#include <vector>\n"
	      "std::map<std::string, std::vector<int>> m;\n"
	      "int f(int n) { m[\"a\"].push_back(n); return m[\"b\"].size(); "
	      "}\n",
	      f);
}

static void write_orders(FILE *f, struct rng *r, unsigned part)
{
	(void)r;
	fprintf(f,
		"CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c INTEGER);\n"
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n "
		"WHERE i < %u) INSERT INTO t SELECT i, printf('%%064d', "
		"i*7919 %% 1047290), i*31 %% 1009 FROM n;\n"
		"CREATE INDEX x ON t(b);\n"
		"SELECT c, count(*), sum(a), min(b) FROM t GROUP BY c ORDER BY "
		"3 LIMIT 50;\n"
		"SELECT count(*) FROM t AS l JOIN t AS r ON l.b = r.b;\n",
		LINES / part);
}

int users_write_inputs(const char *dir, bool quick)
{
	static const struct {
		const char *name;
		void (*write)(FILE *f, struct rng *r, unsigned part);
	} inputs[] = {
		{"lines", write_lines},
		{"doc.json", write_objects},
		{"map.cc", write_source},
		{"orders.sql", write_orders},
	};
	char path[USERS_PATH_MAX];
	struct rng r;

	rng_init(&r, 1);
	for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", dir, inputs[i].name);
		f = fopen(path, "we");
		if (!f)
			return -errno;
		inputs[i].write(f, &r, quick ? QUICK_PART : 1);
		if (fclose(f) != 0)
			return -errno;
	}
	return 0;
}
