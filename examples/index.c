/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index whose keys have an order: all orders of one month, by a scan. It
 * needs a rack: aquifer up.
 *
 *	cc index.c $(pkg-config --cflags --libs aquifer) -o index && ./index
 */
#include <aquifer/index.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *key, *value;
} orders[] = {
	{"2024-06-02/0044", "eve"},
	{"2024-05-17/0042", "ann"},
	{"2024-04-30/0041", "bob"},
	{"2024-05-31/0043", "dan"},
};

static int print_it(void *user, const void *key, size_t key_len,
		    const void *value, size_t value_len)
{
	printf("%.*s: %.*s\n", (int)key_len, (const char *)key, (int)value_len,
	       (const char *)value);
	++*(unsigned *)user;
	return 0; /* go on */
}

static int use(struct aq_index_client *c)
{
	struct aq_index_range may = {
		.from = "2024-05",
		.from_len = 7,
		.to = "2024-06",
		.to_len = 7,
	};
	unsigned count = 0;
	int err = 0;

	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]) && !err; i++)
		err = aq_index_put(c, orders[i].key, strlen(orders[i].key),
				   orders[i].value, strlen(orders[i].value));
	if (!err)
		err = aq_index_scan(c, &may, print_it, &count);
	if (!err)
		printf("%u orders in May\n", count);
	return err;
}

int main(void)
{
	struct aq_index_options options = {.size_bytes = 4 << 20};
	struct aq_index_client *c;
	struct aq_index *index;
	struct aq_rack *rack;
	int err = aq_rack_open(NULL, &rack);

	if (err) {
		fprintf(stderr, "%s\n", aq_last_error());
		return 1;
	}
	err = aq_index_create(rack, "example", &options, &index);
	if (!err) {
		err = aq_index_client_open(index, NULL, &c);
		if (!err) {
			err = use(c);
			aq_index_client_close(c);
		}
		aq_index_close(index);
		(void)aq_index_drop(rack, "example");
	}
	if (err)
		fprintf(stderr, "%s\n", aq_last_error());
	aq_rack_close(rack);
	return err ? 1 : 0;
}
