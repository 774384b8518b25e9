-- Which call went well: a later success of that same call found its fix there, whatever else mended the same error,
-- and in whatever order their logs were read. Of fixes from before nobody knows; they count as any call's.
ALTER TABLE fix ADD COLUMN call TEXT;
