/* SPDX-License-Identifier: Apache-2.0 */
/* Words of options and control calls, taken apart. */
#include "words.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void tor_words_parse(struct tor_words *p, const char *program, const char *text)
{
	char *save = NULL;

	*p = (struct tor_words){.program = program};
	if (strlen(text) < sizeof(p->text))
		memcpy(p->text, text, strlen(text));
	else
		p->err = error_set(-EINVAL, "%s: too many words", program);
	for (char *w = strtok_r(p->text, " ,\t\n", &save); w;
	     w = strtok_r(NULL, " ,\t\n", &save)) {
		char *eq = strchr(w, '=');

		if (p->count == TOR_WORDS_MAX) {
			p->err = error_set(-EINVAL, "%s: too many words",
					   program);
			return;
		}
		if (eq)
			*eq = '\0';
		p->key[p->count] = w;
		p->value[p->count++] = eq ? eq + 1 : "";
	}
}

int tor_words_verb(struct tor_words *p, const char *program,
		   const char *const *verbs, const char *text)
{
	size_t n = strcspn(text, " \t\n"), len = 0;
	char list[256] = "";

	tor_words_parse(p, program, text + n);
	if (p->err)
		return p->err;
	for (int i = 0; verbs[i]; i++) {
		if (strlen(verbs[i]) == n && memcmp(verbs[i], text, n) == 0)
			return i;
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
					!i	       ? ""
					: verbs[i + 1] ? ", "
						       : " and ",
					verbs[i]);
		ASSERT(len < sizeof(list));
	}
	return error_set(-EINVAL, "%s understands %s, not '%.*s'", program,
			 list, (int)u64_min(n, 32), text);
}

const char *tor_words_get(struct tor_words *p, const char *key)
{
	for (unsigned i = 0; i < p->count; i++) {
		if (strcmp(p->key[i], key) == 0) {
			p->used[i] = true;
			return p->value[i];
		}
	}
	return NULL;
}

uint64_t tor_words_u64(struct tor_words *p, const char *key, uint64_t max)
{
	const char *v = tor_words_get(p, key);
	uint64_t out;
	char *end;

	if (v && *v >= '0' && *v <= '9') {
		errno = 0;
		out = strtoull(v, &end, 0);
		if (!errno && *end == '\0' && out <= max)
			return out;
	}
	if (!p->err)
		p->err = error_set(-EINVAL,
				   "%s: %s needs a number, at most %llu",
				   p->program, key, (unsigned long long)max);
	return 0;
}

uint32_t tor_words_u32(struct tor_words *p, const char *key, uint32_t max)
{
	return (uint32_t)tor_words_u64(p, key, max);
}

uint64_t tor_words_opt(struct tor_words *p, const char *key, uint64_t max,
		       uint64_t fallback)
{
	uint64_t v;

	if (!tor_words_get(p, key))
		return fallback;
	v = tor_words_u64(p, key, max);
	if (!v && !p->err)
		p->err = error_set(-EINVAL, "%s: %s is 1 at least", p->program,
				   key);
	return v;
}

void tor_words_ip(struct tor_words *p, const char *key, uint8_t ip[16])
{
	const char *v = tor_words_get(p, key);

	memset(ip, 0, 16);
	if (v && inet_pton(AF_INET, v, ip + 12) == 1)
		ip[10] = ip[11] = 0xff;
	else if ((!v || inet_pton(AF_INET6, v, ip) != 1) && !p->err)
		p->err = error_set(-EINVAL, "%s: %s needs an IP address",
				   p->program, key);
}

unsigned tor_words_pick(struct tor_words *p, const char *key,
			const char *const *names, unsigned count)
{
	const char *v = tor_words_get(p, key);

	for (unsigned i = 0; v && i < count; i++)
		if (strcmp(names[i], v) == 0)
			return i;
	if (v && !p->err)
		p->err = error_set(-EINVAL, "%s has no %s '%.32s'", p->program,
				   key, v);
	return 0;
}

int tor_words_end(struct tor_words *p)
{
	for (unsigned i = 0; i < p->count && !p->err; i++)
		if (!p->used[i])
			p->err = error_set(-EINVAL,
					   "%s does not understand '%.32s'",
					   p->program, p->key[i]);
	return p->err;
}
