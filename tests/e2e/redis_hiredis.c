/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the lines of a file as commands, all in one pipeline, by hiredis, and
 * prints the answers: redis_hiredis PORT|SOCKET FILE */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	WORDS_MAX = 32,
};

static void print(const redisReply *r)
{
	switch (r->type) {
	case REDIS_REPLY_INTEGER:
		printf("(integer) %lld\n", r->integer);
		break;
	case REDIS_REPLY_NIL:
		printf("(nil)\n");
		break;
	case REDIS_REPLY_ARRAY:
		printf("(array) %zu\n", r->elements);
		for (size_t i = 0; i < r->elements; i++)
			print(r->element[i]);
		break;
	default:
		printf("%d %.*s\n", r->type, (int)r->len, r->str);
	}
}

/* Words between blanks; lines with quotes, and those whose answers have no
 * order, are for others. */
static int send_line(redisContext *c, char *line)
{
	const char *word[WORDS_MAX];
	int count = 0;

	if (strpbrk(line, "\"'\\*"))
		return 0;
	for (char *w = strtok(line, " \n"); w && count < WORDS_MAX;
	     w = strtok(NULL, " \n"))
		word[count++] = w;
	if (!count || redisAppendCommandArgv(c, count, word, NULL) != REDIS_OK)
		return 0;
	return 1;
}

int main(int argc, char **argv)
{
	int sent = 0, port = argc == 3 ? atoi(argv[1]) : 0;
	redisContext *c = NULL;
	char line[4096];
	void *reply;
	FILE *f;

	if (argc != 3)
		return 2;
	c = port ? redisConnect("127.0.0.1", port) : redisConnectUnix(argv[1]);
	f = fopen(argv[2], "re");
	if (!c || c->err || !f) {
		fprintf(stderr, "%s\n", c ? c->errstr : "no memory");
		return 1;
	}
	while (fgets(line, sizeof(line), f))
		sent += send_line(c, line);
	for (; sent; sent--) {
		if (redisGetReply(c, &reply) != REDIS_OK) {
			fprintf(stderr, "%s\n", c->errstr);
			return 1;
		}
		print(reply);
		freeReplyObject(reply);
	}
	(void)fclose(f); /* only read */
	redisFree(c);
	return 0;
}
