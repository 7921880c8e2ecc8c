/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A key-value table in far memory: put, get, count, and a change that only
 * happens if nobody else was faster. Needs a rack: aquifer up.
 *
 *	cc kv.c $(pkg-config --cflags --libs aquifer) -o kv && ./kv
 */
#include <aquifer/kv.h>
#include <inttypes.h>
#include <stdio.h>

static int use(struct aq_kv_client *c)
{
	char value[32];
	int64_t visits;
	size_t len;
	bool swapped;
	int err = aq_kv_put(c, "ann", 3, "42", 2, NULL);

	if (!err)
		err = aq_kv_get(c, "ann", 3, value, sizeof(value), &len);
	if (err)
		return err;
	printf("ann: %.*s\n", (int)len, value);
	err = aq_kv_cas(c, "ann", 3, "42", 2, "43", 2, &swapped);
	if (err)
		return err;
	printf("42 became 43: %s\n", swapped ? "yes" : "no");
	for (int i = 0; i < 3; i++) {
		err = aq_kv_incr(c, "visits", 6, 1, &visits);
		if (err)
			return err;
	}
	printf("visits: %" PRId64 "\n", visits);
	return aq_kv_del(c, "ann", 3);
}

int main(void)
{
	struct aq_kv_options options = {.capacity = 1000};
	struct aq_kv_client *c;
	struct aq_rack *rack;
	struct aq_kv *kv;
	int err = aq_rack_open(NULL, &rack);

	if (err) {
		fprintf(stderr, "%s\n", aq_last_error());
		return 1;
	}
	err = aq_kv_create(rack, "example", &options, &kv);
	if (!err) {
		err = aq_kv_client_open(kv, NULL, &c);
		if (!err) {
			err = use(c);
			aq_kv_client_close(c);
		}
		aq_kv_close(kv);
		(void)aq_kv_drop(rack, "example");
	}
	if (err)
		fprintf(stderr, "%s\n", aq_last_error());
	aq_rack_close(rack);
	return err ? 1 : 0;
}
