/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A stack machine with a memo. The author of the pickle controls it, so three rules are enforced. A
 * list that has been used no longer changes, which excludes cycles and makes depths final. A list
 * that is used a thousand times counts as often. And no allocation exceeds what the bytes justify.
 */
#include "cli/readers/pickle.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	PROTOCOL = 0x80,
	MAX_PROTOCOL = 5,
	MAX_MEMO = 1 << 24,
	MAX_KEY = 24, /* of a number as text */
};

/* Opcodes of Python's pickle module for plain data. */
enum opcode {
	OP_MARK = '(',
	OP_STOP = '.',
	OP_EMPTY_TUPLE = ')',
	OP_EMPTY_LIST = ']',
	OP_EMPTY_DICT = '}',
	OP_APPEND = 'a',
	OP_APPENDS = 'e',
	OP_SETITEM = 's',
	OP_SETITEMS = 'u',
	OP_TUPLE = 't',
	OP_LIST = 'l',
	OP_DICT = 'd',
	OP_NONE = 'N',
	OP_BININT = 'J',
	OP_BININT1 = 'K',
	OP_BININT2 = 'M',
	OP_BINFLOAT = 'G',
	OP_BINUNICODE = 'X',
	OP_BINSTRING = 'T',
	OP_SHORT_BINSTRING = 'U',
	OP_BINPUT = 'q',
	OP_LONG_BINPUT = 'r',
	OP_BINGET = 'h',
	OP_LONG_BINGET = 'j',
	OP_TUPLE1 = 0x85,
	OP_TUPLE2 = 0x86,
	OP_TUPLE3 = 0x87,
	OP_NEWTRUE = 0x88,
	OP_NEWFALSE = 0x89,
	OP_LONG1 = 0x8a,
	OP_LONG4 = 0x8b,
	OP_SHORT_BINUNICODE = 0x8c,
	OP_BINUNICODE8 = 0x8d,
	OP_MEMOIZE = 0x94,
	OP_FRAME = 0x95,
};

/* Attributes of a list or a dict: json_t has no room for them. */
struct holder {
	uint64_t weight; /* values in it, each as often as it occurs */
	uint32_t depth;
	bool closed; /* it has been used: it no longer changes */
};

struct value {
	json_t *json; /* owned; NULL: a mark */
	uint32_t holder; /* from 1; 0: neither list nor dict */
};

struct values {
	struct value *value;
	size_t count, cap;
};

struct machine {
	const char *path;
	const uint8_t *data;
	size_t len, at, op_at; /* op_at: position of the opcode */
	struct values stack, memo;
	struct holder *holder;
	size_t holders;
	struct nt_trace_error *error;
};

static void release_values(struct values *values)
{
	for (size_t i = 0; i < values->count; i++)
		json_decref(values->value[i].json);
	free(values->value);
}

static void release_machine(struct machine *machine)
{
	release_values(&machine->stack);
	release_values(&machine->memo);
	free(machine->holder);
}

static int refuse(const struct machine *machine, const char *why)
{
	(void)nt_trace_refuse(machine->error, "%s: byte %zu of the pickle: %s", machine->path,
			      machine->op_at, why);
	return -EBADMSG;
}

/* ---- bytes -------------------------------------------------------------------------------- */

static int cut_short(const struct machine *machine)
{
	(void)nt_trace_refuse(machine->error, "%s: cut short: the pickle ends at byte %zu",
			      machine->path, machine->len);
	return -EBADMSG;
}

static int take_bytes(struct machine *machine, uint64_t len, const uint8_t **ret_bytes)
{
	if (len > machine->len - machine->at)
		return cut_short(machine);
	*ret_bytes = machine->data + machine->at;
	machine->at += (size_t)len;
	return 0;
}

static int take_number(struct machine *machine, size_t bytes, uint64_t *ret_number)
{
	const uint8_t *from = NULL;
	uint64_t number = 0;
	int r = take_bytes(machine, bytes, &from);

	if (r < 0)
		return r;
	for (size_t i = bytes; i; i--)
		number = number << 8 | from[i - 1];
	*ret_number = number;
	return 0;
}

/* ---- values ------------------------------------------------------------------------------- */

/* Grows the array to `count` values. */
static int grow(struct values *values, size_t count)
{
	size_t cap = values->cap ? values->cap : 64;
	struct value *grown;

	if (count <= values->cap)
		return 0;
	while (cap < count)
		cap *= 2;
	grown = reallocarray(values->value, cap, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	values->value = grown;
	values->cap = cap;
	return 0;
}

/* Consumes the value, even on failure. */
static int push(struct machine *machine, struct value value)
{
	int r;

	if (machine->stack.count == NT_PICKLE_MAX_STACK)
		r = refuse(machine, "too many values on the stack");
	else
		r = grow(&machine->stack, machine->stack.count + 1);
	if (r < 0) {
		json_decref(value.json);
		return r;
	}
	machine->stack.value[machine->stack.count++] = value;
	return 0;
}

/* Consumes `json`; NULL: memory ran out. */
static int push_json(struct machine *machine, json_t *json)
{
	return json ? push(machine, (struct value){.json = json}) : -ENOMEM;
}

static int push_holder(struct machine *machine, json_t *json)
{
	if (!json)
		return -ENOMEM;
	/* Grows at powers of two, so that no capacity is stored. */
	if ((machine->holders & (machine->holders - 1)) == 0) {
		struct holder *grown =
			reallocarray(machine->holder, machine->holders ? machine->holders * 2 : 1,
				     sizeof(*grown));

		if (!grown) {
			json_decref(json);
			return -ENOMEM;
		}
		machine->holder = grown;
	}
	machine->holder[machine->holders++] = (struct holder){.weight = 1, .depth = 1};
	/* Each takes at least a byte of the file. */
	return push(machine, (struct value){.json = json, .holder = (uint32_t)machine->holders});
}

static int push_text(struct machine *machine, size_t bytes)
{
	const uint8_t *text = NULL;
	uint64_t len = 0;
	json_t *json;
	int r;

	r = take_number(machine, bytes, &len);
	r = r ?: take_bytes(machine, len, &text);
	if (r < 0)
		return r;
	errno = 0;
	json = json_stringn((const char *)text, (size_t)len);
	if (!json && errno != ENOMEM)
		return refuse(machine, "a string is not UTF-8");
	return push_json(machine, json);
}

/* Two's complement of any length. */
static int push_long(struct machine *machine, size_t bytes)
{
	uint64_t len = 0, number = 0;
	int r = take_number(machine, bytes, &len);

	if (r < 0)
		return r;
	if (len > sizeof(number))
		return refuse(machine, "an integer has more than 64 bits");
	r = take_number(machine, (size_t)len, &number);
	if (r < 0)
		return r;
	if (len && len < sizeof(number) && number >> (len * 8 - 1))
		number |= UINT64_MAX << (len * 8);
	return push_json(machine, json_integer((json_int_t)number));
}

static int push_int(struct machine *machine, size_t bytes)
{
	uint64_t number = 0;
	int r = take_number(machine, bytes, &number);

	if (r < 0)
		return r;
	return push_json(machine, json_integer(bytes == 4 ? (json_int_t)(int32_t)number
							  : (json_int_t)number));
}

/* The only big-endian number. */
static int push_float(struct machine *machine)
{
	uint64_t bits = 0;
	double number;
	int r = take_number(machine, sizeof(bits), &bits);

	if (r < 0)
		return r;
	bits = __builtin_bswap64(bits);
	memcpy(&number, &bits, sizeof(number));
	return push_json(machine, isfinite(number) ? json_real(number) : json_null());
}

/* ---- lists and dicts ---------------------------------------------------------------------- */

/* The position behind the newest mark. */
static int find_mark(const struct machine *machine, size_t *ret_at)
{
	for (size_t at = machine->stack.count; at; at--) {
		if (machine->stack.value[at - 1].json)
			continue;
		*ret_at = at;
		return 0;
	}
	return refuse(machine, "no mark on the stack");
}

/* The list or dict at `at`, which must be open, or NULL. */
static struct holder *open_at(const struct machine *machine, size_t at, bool dict)
{
	const struct value *value = &machine->stack.value[at];
	struct holder *holder;

	if (!value->holder || (dict ? !json_is_object(value->json) : !json_is_array(value->json)))
		return NULL;
	holder = &machine->holder[value->holder - 1];
	return holder->closed ? NULL : holder;
}

/* Counts a value as part of a list; its content is final from now on. */
static int add_weight(const struct machine *machine, struct holder *into, const struct value *value)
{
	struct holder *part = value->holder ? &machine->holder[value->holder - 1] : NULL;
	const uint32_t depth = part ? part->depth + 1 : 1;

	if (part)
		part->closed = true;
	if (depth > into->depth)
		into->depth = depth;
	if (into->depth > NT_PICKLE_MAX_DEPTH)
		return refuse(machine, "lists are nested too deep");
	into->weight += part ? part->weight : 1;
	if (into->weight > NT_PICKLE_MAX_VALUES)
		return refuse(machine, "more values than the reader accepts");
	return 0;
}

static int set_key(const struct machine *machine, json_t *dict, const struct value *key,
		   json_t *value)
{
	const char *text = json_string_value(key->json);
	char number[MAX_KEY];

	if (json_is_integer(key->json)) {
		(void)snprintf(number, sizeof(number), "%lld",
			       (long long)json_integer_value(key->json));
		text = number;
	} else if (!text || strlen(text) != json_string_length(key->json)) {
		return refuse(machine, "a key of a dict is neither a string nor an integer");
	}
	return json_object_set(dict, text, value) < 0 ? -ENOMEM : 0;
}

static void drop_from(struct machine *machine, size_t at)
{
	while (machine->stack.count > at)
		json_decref(machine->stack.value[--machine->stack.count].json);
}

/*
 * Moves the values from `first` on into the list or dict at `into`, and drops those from `drop` on.
 */
static int put_into(struct machine *machine, size_t into, size_t first, size_t drop, bool dict)
{
	const size_t step = dict ? 2 : 1, count = machine->stack.count - first;
	json_t *target = machine->stack.value[into].json;
	struct holder *holder = open_at(machine, into, dict);

	if (!holder)
		return refuse(machine,
			      dict ? "no dict to add to, or it is part of another value already"
				   : "no list to add to, or it is part of another value already");
	if (count % step)
		return refuse(machine, "a key of a dict has no value");
	for (size_t i = first; i < machine->stack.count; i += step) {
		const struct value *value = &machine->stack.value[i + step - 1];
		int r;

		if (!value->json || !machine->stack.value[i].json)
			return refuse(machine, "a mark inside of a list");
		r = add_weight(machine, holder, value);
		if (r < 0)
			return r;
		if (dict)
			r = set_key(machine, target, &machine->stack.value[i], value->json);
		else
			r = json_array_append(target, value->json) < 0 ? -ENOMEM : 0;
		if (r < 0)
			return r;
	}
	drop_from(machine, drop);
	return 0;
}

/* Makes a list or dict of the last `count` values, or of all behind the mark. */
static int wrap(struct machine *machine, size_t count, bool marked, bool dict)
{
	struct value made;
	size_t first = 0;
	int r = 0;

	if (marked)
		r = find_mark(machine, &first);
	else if (machine->stack.count < count)
		r = refuse(machine, "too few values on the stack");
	else
		first = machine->stack.count - count;
	/* Pushed on top, then moved below its content. */
	r = r ?: push_holder(machine, dict ? json_object() : json_array());
	if (r < 0)
		return r;
	made = machine->stack.value[machine->stack.count - 1];
	memmove(&machine->stack.value[first + 1], &machine->stack.value[first],
		(machine->stack.count - 1 - first) * sizeof(made));
	machine->stack.value[first] = made;
	r = put_into(machine, first, first + 1, first + 1, dict);
	if (r < 0 || !marked)
		return r;
	machine->stack.value[first - 1] = made; /* replaces the mark */
	machine->stack.count--;
	return 0;
}

static int append(struct machine *machine, bool dict, bool many)
{
	const size_t count = dict ? 2 : 1;
	size_t first = 0;

	if (many) {
		int r = find_mark(machine, &first);

		if (r < 0)
			return r;
		if (first < 2)
			return refuse(machine, "no list to add to");
		return put_into(machine, first - 2, first, first - 1, dict);
	}
	if (machine->stack.count < count + 1)
		return refuse(machine, "too few values on the stack");
	first = machine->stack.count - count;
	return put_into(machine, first - 1, first, first, dict);
}

/* ---- memo --------------------------------------------------------------------------------- */

static int put_memo(struct machine *machine, uint64_t index)
{
	const struct value *top =
		machine->stack.count ? &machine->stack.value[machine->stack.count - 1] : NULL;
	struct values *memo = &machine->memo;
	int r;

	if (!top || !top->json)
		return refuse(machine, "no value to store in the memo");
	/* Each value takes at least a byte, so a valid index is below the file's length. */
	if (index >= MAX_MEMO || (index > UINT8_MAX && index >= machine->len))
		return refuse(machine, "the index in the memo is too large");
	r = grow(memo, (size_t)index + 1);
	if (r < 0)
		return r;
	while (memo->count <= index)
		memo->value[memo->count++] = (struct value){0};
	json_incref(top->json);
	json_decref(memo->value[index].json);
	memo->value[index] = *top;
	return 0;
}

static int get_memo(struct machine *machine, size_t bytes)
{
	const struct value *value;
	uint64_t index = 0;
	int r = take_number(machine, bytes, &index);

	if (r < 0)
		return r;
	value = index < machine->memo.count ? &machine->memo.value[index] : NULL;
	if (!value || !value->json)
		return refuse(machine, "no such value in the memo");
	/* An open list could become part of itself. */
	if (value->holder)
		machine->holder[value->holder - 1].closed = true;
	json_incref(value->json);
	return push(machine, *value);
}

static int put_memo_at(struct machine *machine, size_t bytes)
{
	uint64_t index = 0;
	int r = take_number(machine, bytes, &index);

	return r ?: put_memo(machine, index);
}

/* ---- the machine -------------------------------------------------------------------------- */

static int check_protocol(struct machine *machine)
{
	uint64_t protocol = 0;
	int r = take_number(machine, 1, &protocol);

	if (r == 0 && protocol > MAX_PROTOCOL)
		r = refuse(machine, "the protocol is newer than 5");
	return r;
}

static int skip_frame(struct machine *machine)
{
	uint64_t len = 0;

	return take_number(machine, sizeof(len), &len);
}

static int run(struct machine *machine, uint8_t op)
{
	switch (op) {
	case PROTOCOL:
		return check_protocol(machine);
	case OP_FRAME:
		return skip_frame(machine);
	case OP_MARK:
		return push(machine, (struct value){0});
	case OP_EMPTY_TUPLE:
	case OP_EMPTY_LIST:
		return push_holder(machine, json_array());
	case OP_EMPTY_DICT:
		return push_holder(machine, json_object());
	case OP_TUPLE:
	case OP_LIST:
		return wrap(machine, 0, true, false);
	case OP_DICT:
		return wrap(machine, 0, true, true);
	case OP_TUPLE1:
	case OP_TUPLE2:
	case OP_TUPLE3:
		return wrap(machine, (size_t)op - OP_TUPLE1 + 1, false, false);
	case OP_APPEND:
	case OP_APPENDS:
		return append(machine, false, op == OP_APPENDS);
	case OP_SETITEM:
	case OP_SETITEMS:
		return append(machine, true, op == OP_SETITEMS);
	case OP_NONE:
		return push_json(machine, json_null());
	case OP_NEWTRUE:
	case OP_NEWFALSE:
		return push_json(machine, json_boolean(op == OP_NEWTRUE));
	case OP_BININT:
		return push_int(machine, 4);
	case OP_BININT1:
		return push_int(machine, 1);
	case OP_BININT2:
		return push_int(machine, 2);
	case OP_LONG1:
		return push_long(machine, 1);
	case OP_LONG4:
		return push_long(machine, 4);
	case OP_BINFLOAT:
		return push_float(machine);
	case OP_SHORT_BINUNICODE:
	case OP_SHORT_BINSTRING:
		return push_text(machine, 1);
	case OP_BINUNICODE:
	case OP_BINSTRING:
		return push_text(machine, 4);
	case OP_BINUNICODE8:
		return push_text(machine, 8);
	case OP_MEMOIZE:
		return put_memo(machine, machine->memo.count);
	case OP_BINPUT:
		return put_memo_at(machine, 1);
	case OP_LONG_BINPUT:
		return put_memo_at(machine, 4);
	case OP_BINGET:
		return get_memo(machine, 1);
	case OP_LONG_BINGET:
		return get_memo(machine, 4);
	default:
		return nt_trace_refuse(
			machine->error,
			"%s: byte %zu of the pickle: opcode 0x%02x: only numbers, strings, lists, tuples and dicts are supported",
			machine->path, machine->op_at, op);
	}
}

bool nt_pickle_is(const uint8_t *data, size_t len)
{
	return len >= 2 && data[0] == PROTOCOL && data[1] >= 2 && data[1] <= MAX_PROTOCOL;
}

int nt_pickle_read(const char *path, const uint8_t *data, size_t len, json_t **ret_root,
		   struct nt_trace_error *ret_error)
{
	__attribute__((cleanup(release_machine))) struct machine machine = {
		.path = path, .data = data, .len = len, .error = ret_error};

	for (;;) {
		const uint8_t *op = NULL;
		int r;

		machine.op_at = machine.at;
		r = take_bytes(&machine, 1, &op);
		if (r < 0)
			return r;
		if (*op == OP_STOP)
			break;
		r = run(&machine, *op);
		if (r < 0)
			return r;
	}
	if (machine.stack.count != 1 || !machine.stack.value[0].json)
		return refuse(&machine, "the pickle does not end with exactly one value");
	if (machine.at != len)
		return nt_trace_refuse(ret_error, "%s: %zu bytes follow the end of the pickle",
				       path, len - machine.at);
	*ret_root = json_incref(machine.stack.value[0].json);
	return 0;
}
