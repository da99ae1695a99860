ALTER TABLE minutes ADD COLUMN models_mean REAL;
ALTER TABLE minutes ADD COLUMN models_max REAL;
ALTER TABLE minutes ADD COLUMN decode_mean REAL;
ALTER TABLE minutes ADD COLUMN decode_max REAL;
